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


ROPE = {"theta": 500000, "style": "half"}
LLAMA3 = {"kind": "llama3", "factor": 8, "original_max_seq_len": 64}
YARN = {"kind": "yarn", "factor": 4.0, "original_max_seq_len": 64}
MEMORY = SIZES | {"qkv": "separate", "memory": {"T_k": 5}}
RAGGED = TEXT | {"input": {"kind": "text", "text": ["abc", "a"]}, "padding": "left"}
CACHE = {"prefill": 4, "steps": 2, "chunk": 2}


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
    yield SIZES | {"H_kv": 2, "bias": True, "output_bias": False, "window": 3, "qk_norm": True, "qk_norm_eps": 1e-5}
    yield SIZES | {"scale": 0.1, "softcap": 50, "alibi": True, "sink": True, "engine": "explicit"}
    yield SIZES | {"engine": "sdpa", "softcap": None, "sink": False, "window": None, "mask": None, "rope": None}
    yield SIZES | {"rope": ROPE | {"scaling": None, "_": 1}}
    for scaling in ({"kind": "none"}, {"kind": "linear", "factor": 2}, LLAMA3, YARN,
                    LLAMA3 | {"low_freq_factor": 1, "high_freq_factor": 2.5},
                    YARN | {"beta_fast": 16, "beta_slow": 2, "attention_factor": None}):
        yield SIZES | {"rope": ROPE | {"scaling": scaling}}
    for mask in ("bidirectional", {"kind": "bidirectional", "_": 1}, {"kind": "prefix", "length": 3},
                 {"kind": "document", "lengths": [3, 5]}, {"kind": "dilated", "stride": 2},
                 [[1] * 8] * 4 + [[True, False] * 4] * 4):
        yield SIZES | {"mask": mask}
        yield SIZES | {"mask": mask, "causal": False}
    yield SIZES | {"padding": "right", "lengths": [8, 3]}
    yield SIZES | {"padding": None, "lengths": None, "memory": None, "cache": None}
    yield SIZES | {"cache": CACHE}
    yield SIZES | {"cache": {"prefill": 7, "steps": 1, "chunk": None}, "window": 2, "mode": "eval", "causal": True}
    yield MEMORY
    yield MEMORY | {"causal": False, "window": None, "alibi": False, "mask": [[1] * 5] * 8}
    yield MEMORY | {"padding": "left", "lengths": [5, 2], "sink": True, "qk_norm": True, "H_kv": 1}
    yield RAGGED
    yield RAGGED | {"T": 5, "lengths": [3, 1]}
    yield IDS | {"input": {"kind": "tokens", "ids": [[1], [2, 3, 4]]}, "padding": "right"}
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
        "H_kv": [0, "2", 1.5],
        "output_bias": [1],
        "window": [0, -1, "3"],
        "mask": [7, True, "causal", "prefix", {}, [], [1], [[2] * 8] * 8, [["1"] * 8] * 8, {"kind": "rows"}, {"file": ""},
                 {"kind": "prefix"}, {"kind": "prefix", "length": 0}, {"kind": "prefix", "length": 2, "stride": 2},
                 {"kind": "document"}, {"kind": "document", "lengths": []}, {"kind": "document", "lengths": [0]},
                 {"kind": "dilated"}, {"kind": "dilated", "stride": 0}, {"kind": "bidirectional", "file": "x"},
                 {"kind": "bidirectional", "name": "x"}, {"name": "x"}],
        "rope": [True, {}, {"theta": 1}, ROPE | {"theta": 0}, ROPE | {"style": "both"}, ROPE | {"base": 1},
                 ROPE | {"scaling": {}}, ROPE | {"scaling": {"kind": "dynamic"}}, ROPE | {"scaling": {"kind": "linear"}},
                 ROPE | {"scaling": {"kind": "linear", "factor": 0}}, ROPE | {"scaling": {"kind": "none", "factor": 1}},
                 ROPE | {"scaling": {"kind": "llama3", "factor": 2}}, ROPE | {"scaling": LLAMA3 | {"beta_fast": 1}},
                 ROPE | {"scaling": YARN | {"low_freq_factor": 1}}, ROPE | {"scaling": YARN, "theta": 1},
                 ROPE | {"scaling": {"kind": "yarn", "original_max_seq_len": 8}}],
        "qk_norm": ["yes"],
        "qk_norm_eps": [0, "1e-6"],
        "scale": [0, -1, "0.1"],
        "softcap": [0, True],
        "alibi": [1],
        "sink": [1],
        "engine": ["flash", True],
        "padding": ["left", "both"],
        "lengths": [[8, 8]],
        "memory": [{"T_k": 5}, 5, {}],
        "cache": [{}, {"prefill": 4}, {"steps": 4}, {"prefill": 0, "steps": 8}, CACHE | {"chunk": 0}, CACHE | {"size": 1}],
    }.items():
        for value in values:
            yield SIZES | {key: value}
    for change in ({"causal": True}, {"window": 3}, {"rope": ROPE}, {"alibi": True}, {"mask": "bidirectional"},
                   {"mask": {"kind": "dilated", "stride": 2}}, {"cache": CACHE}, {"qkv": "fused"}, {"padding": "left"}):
        yield MEMORY | change
    for mask in ("bidirectional", {"kind": "prefix", "length": 3}):
        yield SIZES | {"mask": mask, "causal": True}
        yield SIZES | {"mask": mask, "cache": CACHE}
    yield SIZES | {"cache": CACHE, "causal": False}
    yield SIZES | {"cache": CACHE, "mode": "train"}
    yield SIZES | {"engine": "sdpa", "softcap": 50}
    yield SIZES | {"engine": "sdpa", "sink": True}
    yield SIZES | {"padding": "left", "lengths": [0, 8]}
    yield SIZES | {"module": "single-head", "H": 1, "H_kv": 2}
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
