"""Holds the schema of a config against attn-cli itself: both must accept, and both must refuse, the same configs.

    check_config_schema.py --cli FILE --configs DIR --schema FILE
"""

import argparse
import json
import pathlib
import subprocess
import sys

import jsonschema

SIZES = {"B": 2, "T": 8, "d_model": 16, "H": 4}
TEXT = {"d_model": 16, "H": 4, "embedding": {}, "input": {"kind": "text", "text": "abc"}}
IDS = {"d_model": 16, "H": 4, "embedding": {"vocab_size": 9}, "input": {"kind": "tokens", "ids": [[1, 2], [3, 4]]}}


def tensor(file):
    return {"H": 12, "qkv": "separate", "input": {"kind": "tensor", "file": file}}


def right_ones(weights):
    """Configs that are right, beside those that are shipped; `weights` is a real weights file."""
    yield SIZES
    yield SIZES | {"$schema": "../schemas/config.schema.json", "_note": ["anything"], "d_k": None, "input": None}
    yield SIZES | {"module": "single-head", "H": 1, "d_k": 5, "bias": True, "dropout": 0.5, "causal": False}
    yield SIZES | {"seed": 2**63 - 1, "threads": 1024, "device": "cpu", "mode": "train", "max_seq_len": 8}
    yield SIZES | {"embedding": {"vocab_size": 3, "positions": "sinusoidal", "_": 1}}
    yield SIZES | {"weights_layout": "auto"}
    yield TEXT
    yield TEXT | {"input": {"kind": "text", "text": ["ab", "cd"], "tokenizer": "words", "file": None}}
    yield IDS
    yield tensor(weights)
    yield tensor(weights) | {"weights": weights, "weights_layout": "in-out"}


def wrong_ones(weights):
    """Configs with one thing wrong each."""
    for key in SIZES:
        yield {name: value for name, value in SIZES.items() if name != key}
        for value in (0, -1, 1.5, "2", [1], True, 2**31):
            yield SIZES | {key: value}
    for key, values in {
        "haeds": [4],
        "$schema": [1, ""],
        "module": ["multi", 1],
        "d_k": [0, "4"],
        "qkv": ["Fused", ""],
        "bias": ["true", 0],
        "dropout": [-0.1, 1, 1.5, "0.1"],
        "causal": [1],
        "max_seq_len": [0, 2**31],
        "embedding": [4, {}, {"vocab_size": 0}, {"vocab_size": 4, "position": "none"}, {"vocab_size": 4, "positions": 1}],
        "weights": [1, ""],
        "weights_layout": ["in_out", "in-out", "out-in"],
        "input": ["random", {}, {"kind": "noise"}, {"kind": "random", "file": "x"}, {"kind": "tensor"}, [1]],
        "mode": ["training"],
        "dtype": ["float", "F32"],
        "device": ["gpu", "cuda:", "cuda:128", "cuda:01", 0],
        "seed": [-1, 2**63, 0.5, "1"],
        "threads": [0, 1025, 1.5],
    }.items():
        for value in values:
            yield SIZES | {key: value}
    yield SIZES | {"module": "single-head"}
    yield SIZES | {"d_model": 15, "H": 3, "embedding": {"vocab_size": 4, "positions": "sinusoidal"}}
    yield SIZES | {"input": {"kind": "text", "text": "abcdefgh"}}
    for change in ({"text": ""}, {"text": []}, {"text": 7}, {"file": "x"}, {"text": None}, {"ids": [[1]]}, {"name": "x"}):
        yield TEXT | {"input": TEXT["input"] | change}
    for ids in ([], [[]], [1, 2], [[-1]], [["a"]], None):
        yield IDS | {"input": {"kind": "tokens", "ids": ids}}
    yield IDS | {"embedding": {}}
    yield tensor(weights) | {"embedding": {"vocab_size": 4}}
    yield tensor(weights) | {"input": {"kind": "tensor", "file": weights, "text": "a"}}


def main():
    parser = argparse.ArgumentParser()
    for name in ("cli", "configs", "schema"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    options = parser.parse_args()
    schema = json.loads(options.schema.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    def tool_says(*words, text=None):
        done = subprocess.run([options.cli, "config", *words], input=text, capture_output=True, check=False)
        return done.returncode, done.stdout

    problems, counts = [], {"accepted": 0, "refused": 0}

    def expect(what, config, accepted, status):
        by_schema = validator.is_valid(config)
        counts["accepted" if accepted else "refused"] += 1
        if by_schema != accepted:
            problems.append(f"{what}: the schema {'accepts' if by_schema else 'refuses'} it")
        if (status == 0) != accepted:
            problems.append(f"{what}: attn-cli has exit status {status}")

    for file in sorted(options.configs.glob("*.json")):
        expect(file.name, json.loads(file.read_bytes()), True, tool_says(str(file))[0])
    status, example = tool_says("--example")
    expect("the example", json.loads(example), True, max(status, tool_says("-", text=example)[0]))

    weights = str(options.configs / "minilm_layer0.safetensors")
    for accepted, configs in ((True, right_ones(weights)), (False, wrong_ones(weights))):
        for config in configs:
            text = json.dumps(config)
            expect(text, config, accepted, tool_says("-", text=text.encode())[0])
    print("\n".join(problems) or f"the schema holds: {counts['accepted']} accepted, {counts['refused']} refused")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
