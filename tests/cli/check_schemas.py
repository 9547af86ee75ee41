"""Holds what attn-cli really writes against the schemas that are shipped.

    check_schemas.py --cli FILE --configs DIR --schemas DIR

Each schema must accept the outputs of several configs, and must refuse the first of them once a field is missing or
has turned into something else: a schema that accepts anything proves nothing.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema


def run_cli(cli, *words, statuses=(0, 1)):
    done = subprocess.run([cli, *words], capture_output=True, check=False)
    if done.returncode not in statuses:
        sys.exit(f"attn-cli {' '.join(words)}: exit {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def refuse_constant(word):
    raise ValueError(f"{word} is no JSON")


def parse(text):
    return json.loads(text, parse_constant=refuse_constant)


def real_records(cli, configs):
    """Pairs of (name of the schema, a real record)."""
    for name in ("tiny", "text", "single_head", "encoder"):
        config = str(configs / f"{name}.json")
        yield "trace", parse(run_cli(cli, "trace", config, "--json", "-", *(["--values"] if name == "text" else [])))
        yield "verify", parse(run_cli(cli, "verify", config, "--json", "-"))
    for name in ("llama_cache", "bert_padded", "cross_attention"):
        config = str(configs / f"{name}.json")
        yield "trace", parse(run_cli(cli, "trace", config, "--json", "-"))
        with tempfile.TemporaryDirectory() as folder:
            run_cli(cli, "heatmap", config, "-o", folder)
            yield "heatmap_index", parse((pathlib.Path(folder) / "index.json").read_bytes())
    sdpa = run_cli(cli, "trace", str(configs / "tiny.json"), "--set", "engine=sdpa", "--json", "-")
    yield "trace", parse(sdpa)
    tiny, encoder, missing = (str(configs / f"{name}.json") for name in ("tiny", "encoder", "no_such_config"))
    yield "verify", parse(run_cli(cli, "verify", tiny, "--json", "-", "--fault", "leak-random", "--quick", statuses=[1]))
    yield "verify", parse(run_cli(cli, "verify", tiny, "--json", "-", "--self-test"))
    yield "verify", parse(run_cli(cli, "verify", tiny, missing, encoder, "--json", "-", "--sweep", "T=4,0",
                                  "--check", "shapes,effective-mask", "--fault", "leak-corner-first", statuses=[2]))
    yield "verify", parse(run_cli(cli, "verify", tiny, missing, "--self-test", "--json", "-", statuses=[3]))
    for words in ([], ["--what", "masked_scores"]):
        with tempfile.TemporaryDirectory() as folder:
            run_cli(cli, "heatmap", str(configs / "text.json"), "-o", folder, *words)
            yield "heatmap_index", parse((pathlib.Path(folder) / "index.json").read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{seed}.safetensors" for seed in (0, 1)]
        for seed, file in enumerate(files):
            run_cli(cli, "trace", str(configs / "tiny.json"), "--set", f"seed={seed}", "--save", file)
        yield "compare", parse(run_cli(cli, "compare", *files, "--json", "-"))
        yield "compare", parse(run_cli(cli, "compare", files[0], files[0], "--exact", "--json", "-"))
    for file in sorted(configs.glob("*.json")):
        yield "config", parse(run_cli(cli, "config", str(file)))


def broken_copies(record):
    """The record with one field gone or of another type, for each field of its own and of its first listed thing; where
    the schema promises that there are no others, also with one too many."""
    places = [()] + [(key, 0) for key in ("steps", "checks", "files", "tensors", "faults", "runs") if record.get(key)]
    is_closed = record["kind"] in ("verify", "self_test", "verify_runs")
    places += [("summary",)] if is_closed else []
    for place in places:
        target = record
        for key in place:
            target = target[key]
        for key in target:
            for change in ("missing", "changed"):
                if change == "missing" and key in ("values", "cells", "map"):
                    continue
                broken = copy.deepcopy(record)
                inner = broken
                for step in place:
                    inner = inner[step]
                if change == "missing":
                    del inner[key]
                else:
                    inner[key] = {"unexpected": True}
                yield f"{'/'.join(map(str, (*place, key)))} {change}", broken
        if is_closed:
            broken = copy.deepcopy(record)
            inner = broken
            for step in place:
                inner = inner[step]
            inner["one_too_many"] = 1
            yield f"{'/'.join(map(str, place))} with one too many", broken


def main():
    parser = argparse.ArgumentParser()
    for name in ("cli", "configs", "schemas"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    options = parser.parse_args()

    validators = {}
    for file in sorted(options.schemas.glob("*.schema.json")):
        schema = parse(file.read_bytes())
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[file.name.removesuffix(".schema.json")] = jsonschema.Draft202012Validator(schema)

    problems, seen = [], set()
    for name, record in real_records(str(options.cli), options.configs):
        # Nearly every field of a config may be missing: check_config_schema.py says what its schema must refuse.
        kind = (name, record.get("kind"))
        first = kind not in seen and name != "config"
        seen |= {name, kind}
        for error in validators[name].iter_errors(record):
            problems.append(f"{name}: {error.json_path}: {error.message[:200]}")
        for what, broken in broken_copies(record) if first else ():
            if validators[name].is_valid(broken):
                problems.append(f"{name}: accepted with {what}")
    problems += [f"{name}: no real record was held against it" for name in validators.keys() - seen]
    print("\n".join(sorted(set(problems))) or f"{len(validators)} schemas hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
