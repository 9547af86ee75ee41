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


def run_cli(cli, *words):
    done = subprocess.run([cli, *words], capture_output=True, check=False)
    if done.returncode not in (0, 1):
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
    for words in ([], ["--what", "masked_scores"]):
        with tempfile.TemporaryDirectory() as folder:
            run_cli(cli, "heatmap", str(configs / "text.json"), "-o", folder, *words)
            yield "heatmap_index", parse((pathlib.Path(folder) / "index.json").read_bytes())


def broken_copies(record):
    """The record with one field gone or of another type, for each field of its own and of its first listed thing."""
    places = [()] + [(key, 0) for key in ("steps", "checks", "files") if key in record]
    for place in places:
        target = record
        for key in place:
            target = target[key]
        for key in target:
            for change in ("missing", "changed"):
                if change == "missing" and key in ("values", "cells"):
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
        first = name not in seen
        seen.add(name)
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
