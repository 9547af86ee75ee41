"""The attention layers of the `transformers` package, small and random, as fixtures: an oracle that nobody here wrote.

scripts/make_fixtures calls write_model_cases() and write_rope_tables(). Every layer, rotary embedding, mask and cache
is the package's own, run eagerly; nothing here computes attention. A file is as those of the lessons' modules (see
make_fixtures), beside:

    memory, gradient.memory     cross-attention: what keys and values are made of
    *_cache_*                   outputs and weights of piecewise runs with the package's own cache, side by side, no
                                gradients; a step's weights are 0 for keys that are not there any more or not yet
    metadata                    also `model_config`: the model's config.json, as the package writes it

Parameters are renamed to ours; GPT-2's weights, which lie as [in, out], are stored as [out, in].

The package computes RoPE's angles, the softmax of most models and the RMS norms in float32, whatever the model's dtype.
So a float64 model agrees with exact formulas to 1e-7 only. The _f64 files are made with every float32 in that code
replaced by float64 while it runs (in_dtype below): the same code, in one precision. The _f32 files are made as it is.
"""

import contextlib
import json

import torch
from torch.overrides import TorchFunctionMode

from fixture_file import DTYPES, metadata_of, normal, source_of, write_safetensors

try:
    import transformers
    from transformers import masking_utils
    from transformers.models.bart import modeling_bart
    from transformers.models.bert import modeling_bert
    from transformers.models.bloom import modeling_bloom
    from transformers.models.falcon import modeling_falcon
    from transformers.models.gemma2 import modeling_gemma2
    from transformers.models.gpt2 import modeling_gpt2
    from transformers.models.gpt_oss import modeling_gpt_oss
    from transformers.models.llama import modeling_llama
    from transformers.models.mistral import modeling_mistral
    from transformers.models.qwen2 import modeling_qwen2
    from transformers.models.qwen3 import modeling_qwen3
except ImportError as error:
    raise SystemExit(f"make_fixtures: {error}; the models' layers need `pip install transformers==5.24.0`") from error

TRANSFORMERS_VERSION = "5.24.0"
MADE_WITH = f", transformers {TRANSFORMERS_VERSION}"


# --- precision -------------------------------------------------------------------------------------------------------


class Float64ForFloat32(TorchFunctionMode):
    """While it is active, every call that asks for float32 gets float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def wider(value):
            return torch.float64 if value is torch.float32 else value

        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(wider, args), **{key: wider(value) for key, value in (kwargs or {}).items()})


@contextlib.contextmanager
def in_dtype(dtype):
    """Modules made and run inside have this dtype; float64 everywhere when it is float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with Float64ForFloat32() if dtype == torch.float64 else contextlib.nullcontext():
            yield
    finally:
        torch.set_default_dtype(before)


# --- what a run needs beside x: the package's own angles and masks ---------------------------------------------------


def real_keys_of(ours):
    """(B, keys), 1 for a token and 0 for padding, as the package's tokenizers write it; None without padding."""
    if "padding" not in ours:
        return None
    keys = ours["memory"]["T_k"] if "memory" in ours else ours["T"]
    rows = [[1] * length + [0] * (keys - length) for length in ours["lengths"]]
    return torch.tensor([row[::-1] if ours["padding"] == "left" else row for row in rows])


def mask_for(config, ours, x, memory=None, cache=None):
    """(B, 1, T_q, T_k), 0 or the dtype's lowest number, to be added to the scores."""
    config._attn_implementation = "eager"
    real_keys = real_keys_of(ours)
    if not ours["causal"]:
        return masking_utils.create_bidirectional_mask(config, x, real_keys, encoder_hidden_states=memory)
    if "window" in ours:
        return masking_utils.create_sliding_window_causal_mask(config, x, real_keys, cache)
    return masking_utils.create_causal_mask(config, x, real_keys, cache)


def positions_for(ours, first, length):
    """As generate() counts them: from the first real token of a left-padded item on."""
    real_keys = real_keys_of(ours)
    if real_keys is not None and ours["padding"] == "left":
        return (real_keys.cumsum(-1) - 1).clamp(min=0)
    return torch.arange(first, first + length)[None]


# --- the models' configs ---------------------------------------------------------------------------------------------


def sizes(ours):
    """The keys that Llama and its family share. Their own defaults are those of huge models."""
    names = {"hidden_size": ours["d_model"], "num_attention_heads": ours["H"], "num_hidden_layers": 1}
    names |= {"num_key_value_heads": ours.get("H_kv", ours["H"]), "vocab_size": 8, "intermediate_size": 8}
    scaling = ours.get("rope", {}).get("scaling", {})
    longest = int(scaling.get("factor", 1) * scaling.get("original_max_seq_len", 4096))
    names |= {"head_dim": ours.get("d_k", ours["d_model"] // ours["H"]), "max_position_embeddings": longest}
    names |= {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    if "rope" in ours:
        names["rope_parameters"] = rope_parameters(ours["rope"])
    return names


def rope_parameters(rope):
    scaling = rope.get("scaling", {"kind": "none"})
    kind = {"none": "default"}.get(scaling["kind"], scaling["kind"])
    parameters = {"rope_type": kind, "rope_theta": rope["theta"]}
    theirs = {"original_max_seq_len": "original_max_position_embeddings"}
    return parameters | {theirs.get(key, key): value for key, value in scaling.items() if key != "kind"}


class Rotary:
    """A layer that takes angles: made of the package's config, attention and rotary embedding."""

    renamed = {}

    def __init__(self, config, attention, rotary):
        self.config, self.layer, self.rotary = config, attention, rotary

    def run(self, ours, x, memory=None, cache=None, first=0):
        angles = self.rotary(x, positions_for(ours, first, x.shape[1]))
        mask = mask_for(self.config, ours, x, cache=cache)
        return self.layer(x, position_embeddings=angles, attention_mask=mask, cache=cache)


def llama(ours):
    config = transformers.LlamaConfig(**sizes(ours), attention_bias=ours["bias"])
    return Rotary(config, modeling_llama.LlamaAttention(config, 0), modeling_llama.LlamaRotaryEmbedding(config))


def mistral(ours):
    config = transformers.MistralConfig(**sizes(ours), sliding_window=ours["window"])
    return Rotary(config, modeling_mistral.MistralAttention(config, 0), modeling_mistral.MistralRotaryEmbedding(config))


def gemma2(ours):
    config = transformers.Gemma2Config(
        **sizes(ours),
        sliding_window=ours["window"],
        layer_types=["sliding_attention"],
        attn_logit_softcapping=ours["softcap"],
        query_pre_attn_scalar=GEMMA2_SCALAR,
    )
    return Rotary(config, modeling_gemma2.Gemma2Attention(config, 0), modeling_gemma2.Gemma2RotaryEmbedding(config))


def qwen2(ours):
    config = transformers.Qwen2Config(**sizes(ours), layer_types=["full_attention"])
    return Rotary(config, modeling_qwen2.Qwen2Attention(config, 0), modeling_qwen2.Qwen2RotaryEmbedding(config))


def qwen3(ours):
    config = transformers.Qwen3Config(
        **sizes(ours), layer_types=["full_attention"], attention_bias=ours["bias"], rms_norm_eps=ours["qk_norm_eps"]
    )
    return Rotary(config, modeling_qwen3.Qwen3Attention(config, 0), modeling_qwen3.Qwen3RotaryEmbedding(config))


def gpt_oss(ours):
    config = transformers.GptOssConfig(
        **sizes(ours), sliding_window=ours["window"], layer_types=["sliding_attention"], attention_bias=ours["bias"]
    )
    return Rotary(config, modeling_gpt_oss.GptOssAttention(config, 0), modeling_gpt_oss.GptOssRotaryEmbedding(config))


class Falcon:
    """The new decoder architecture: per key head its query heads, then k, then v."""

    renamed = {"query_key_value": "qkv_proj", "dense": "o_proj"}

    def __init__(self, ours):
        sized = sizes(ours)
        del sized["head_dim"], sized["intermediate_size"]
        sized["num_kv_heads"] = sized.pop("num_key_value_heads")
        self.config = transformers.FalconConfig(**sized, new_decoder_architecture=True, alibi=False, bias=ours["bias"])
        self.config._attn_implementation = "eager"
        self.layer = modeling_falcon.FalconAttention(self.config, 0)
        self.rotary = modeling_falcon.FalconRotaryEmbedding(self.config)

    def run(self, ours, x, memory=None):
        angles = self.rotary(x, positions_for(ours, 0, x.shape[1]))
        return self.layer(x, None, mask_for(self.config, ours, x), position_embeddings=angles, output_attentions=True)


class Bloom:
    renamed = {"query_key_value": "qkv_proj", "dense": "o_proj"}

    def __init__(self, ours):
        self.config = transformers.BloomConfig(hidden_size=ours["d_model"], n_head=ours["H"], n_layer=1, vocab_size=8)
        self.layer = modeling_bloom.BloomAttention(self.config, 0)

    def run(self, ours, x, memory=None):
        everything = torch.ones(x.shape[:2], dtype=torch.int64)
        alibi = modeling_bloom.build_alibi_tensor(everything, ours["H"], x.dtype)
        return self.layer(x, torch.zeros_like(x), alibi, mask_for(self.config, ours, x), output_attentions=True)


class Gpt2:
    renamed = {}

    def __init__(self, ours):
        self.config = transformers.GPT2Config(
            n_embd=ours["d_model"], n_head=ours["H"], n_layer=1, vocab_size=8, bos_token_id=None, eos_token_id=None
        )
        self.layer = modeling_gpt2.GPT2Attention(self.config, layer_idx=0)

    def run(self, ours, x, memory=None):
        return self.layer(x, attention_mask=mask_for(self.config, ours, x))


class Bert:
    """BERT's output module also adds x and normalises; of it the output projection alone is taken."""

    renamed = {"self.query": "q_proj", "self.key": "k_proj", "self.value": "v_proj", "output.dense": "o_proj"}

    def __init__(self, ours):
        self.config = transformers.BertConfig(
            hidden_size=ours["d_model"], num_attention_heads=ours["H"], num_hidden_layers=1, vocab_size=8
        )
        self.layer = modeling_bert.BertAttention(self.config, layer_idx=0)
        del self.layer.output.LayerNorm

    def run(self, ours, x, memory=None):
        context, weights = self.layer.self(x, attention_mask=mask_for(self.config, ours, x))
        return self.layer.output.dense(context), weights


class Bart:
    """A decoder's look at the encoder's output."""

    renamed = {"out_proj": "o_proj"}

    def __init__(self, ours):
        self.config = transformers.BartConfig(d_model=ours["d_model"], vocab_size=8)
        self.layer = modeling_bart.BartAttention(
            ours["d_model"], ours["H"], is_decoder=True, config=self.config, layer_idx=0
        )

    def run(self, ours, x, memory):
        return self.layer(x, key_value_states=memory, attention_mask=mask_for(self.config, ours, x, memory))


# --- the cases -------------------------------------------------------------------------------------------------------

GEMMA2_SCALAR = 10  # scores are divided by its square root, not by that of d_k


def config_of(*, B=1, T=8, d_model=16, H=4, qkv="separate", bias=False, causal=True, **others):
    """Our config of a case. Sizes are small: a file is read by tests, not by people."""
    config = {"B": B, "T": T, "d_model": d_model, "H": H, "qkv": qkv, "bias": bias, "causal": causal}
    return config | {"max_seq_len": T + 3} | others


def rope(theta, **scaling):
    config = {"theta": theta, "style": "half"}
    return config | {"scaling": scaling} if scaling else config


# theta 100 with d_k = 8: wavelengths of 6, 20, 63 and 199 tokens, so that T = 12 sees every pair turn, and an original
# length of 64 has pairs on both sides of each limit of llama3 and yarn and between them.
ONE_GROUP = {"T": 12, "H": 2, "H_kv": 1, "d_k": 8}
CASES = {
    "llama": (llama, config_of(B=2, H_kv=2, rope=rope(10000.0))),
    "llama_linear": (llama, config_of(**ONE_GROUP, rope=rope(100.0, kind="linear", factor=4.0))),
    "llama_llama3": (
        llama,
        config_of(
            **ONE_GROUP,
            rope=rope(
                100.0,
                kind="llama3",
                factor=4.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_seq_len=64,
            ),
        ),
    ),
    "llama_yarn": (
        llama,
        config_of(
            **ONE_GROUP,
            rope=rope(100.0, kind="yarn", factor=4.0, beta_fast=2.0, beta_slow=0.25, original_max_seq_len=64),
        ),
    ),
    "llama_left_padded": (
        llama,
        config_of(B=3, T=7, H_kv=2, rope=rope(10000.0), padding="left", lengths=[7, 4, 2]),
    ),
    "mistral": (mistral, config_of(T=10, H_kv=2, window=4, rope=rope(10000.0))),
    "gemma2": (
        gemma2,
        config_of(T=9, H_kv=2, d_k=6, window=5, softcap=1.5, scale=GEMMA2_SCALAR**-0.5, rope=rope(10000.0)),
    ),
    "qwen2": (qwen2, config_of(H_kv=2, bias=True, output_bias=False, rope=rope(1000000.0))),
    "qwen3": (qwen3, config_of(H=2, H_kv=1, d_k=8, qk_norm=True, qk_norm_eps=1e-3, rope=rope(1000000.0))),
    "gpt2": (Gpt2, config_of(qkv="fused", bias=True)),
    "bert": (Bert, config_of(B=3, T=7, bias=True, causal=False, padding="right", lengths=[7, 4, 1])),
    "falcon": (Falcon, config_of(H_kv=2, qkv="fused-per-head", rope=rope(10000.0))),
    "gpt_oss": (gpt_oss, config_of(T=9, H_kv=2, bias=True, window=3, sink=True, rope=rope(150000.0))),
    "bloom": (Bloom, config_of(T=10, d_model=12, H=6, qkv="fused-per-head", bias=True, alibi=True)),
    "bart_cross": (
        Bart,
        config_of(B=2, T=5, bias=True, causal=False, memory={"T_k": 8}, padding="right", lengths=[8, 3]),
    ),
    "llama_cache": (llama, config_of(B=2, T=10, H_kv=2, rope=rope(10000.0), cache={"prefill": 5, "steps": 5})),
    "mistral_cache": (
        mistral,
        config_of(T=12, H_kv=2, window=4, rope=rope(10000.0), cache={"prefill": 6, "steps": 3, "chunk": 2}),
    ),
}


# --- running and writing ---------------------------------------------------------------------------------------------


def our_name(name, renamed):
    stem, _, ending = name.rpartition(".")
    return f"{renamed.get(stem, stem)}.{ending}" if stem else ending


def fill(model, source, dtype):
    with torch.no_grad():
        for name, parameter in model.layer.named_parameters():
            if name.endswith("norm.weight"):
                parameter.copy_((1 + normal(source, parameter.shape, torch.float64, 0.3)).float())
            elif name == "sinks":
                parameter.copy_(normal(source, parameter.shape, dtype))
            elif parameter.dim() > 1:
                parameter.copy_(normal(source, parameter.shape, dtype, model.config.hidden_size**-0.5))
            else:
                parameter.copy_(normal(source, parameter.shape, dtype, 0.5))


def by_our_names(model, value_of):
    """Parameters, or what belongs to them, as we keep them."""
    turned = isinstance(model, Gpt2)
    tensors = {}
    for name, parameter in model.layer.named_parameters():
        value = value_of(parameter)
        tensors[our_name(name, model.renamed)] = value.T if turned and value.dim() > 1 else value
    return tensors


def queries_with_a_key(ours):
    """(B, T, 1), 0 where causality and padding on the left leave a query no key. The package gives such rows the mean
    of all values, which no model reads; so the direction of the backward pass is 0 there."""
    if ours.get("padding") != "left":
        return 1
    return real_keys_of(ours)[..., None]


def run_in_pieces(model, ours, x):
    """Prefill and steps with the package's cache; weights on all T keys."""
    plan = ours["cache"]
    pieces = [plan["prefill"]] + [plan.get("chunk", 1)] * plan["steps"]
    cache = transformers.DynamicCache(config=model.config)
    outputs, rows, first = [], [], 0
    for length in pieces:
        output, weights = model.run(ours, x[:, first : first + length], cache=cache, first=first)
        last = first + length
        outputs.append(output)
        rows.append(torch.nn.functional.pad(weights, (last - weights.shape[-1], ours["T"] - last)))
        first = last
    return torch.cat(outputs, dim=1), torch.cat(rows, dim=2)


def write_model_case(folder, name, suffix):
    dtype, dtype_name = DTYPES[suffix]
    build, ours = CASES[name]
    source = source_of(name)
    with in_dtype(dtype):
        model = build(ours)
        model.config._attn_implementation = "eager"
        model.layer.eval()
        fill(model, source, dtype)
        x = normal(source, (ours["B"], ours["T"], ours["d_model"]), dtype).requires_grad_()
        inputs = {"x": x}
        if "memory" in ours:
            size = (ours["B"], ours["memory"]["T_k"], ours["d_model"])
            inputs["memory"] = normal(source, size, dtype).requires_grad_()
        # Half of N(0, 1): gradients sum up many terms, and what is below 1 is judged by its absolute error.
        dy = normal(source, x.shape, dtype, 0.5) * queries_with_a_key(ours)

        if "cache" in ours:
            output, weights = run_in_pieces(model, ours, x)
        else:
            output, weights = model.run(ours, x, inputs.get("memory"))
            (output * dy).sum().backward()

    tensors = inputs | by_our_names(model, lambda parameter: parameter)
    tensors |= {"expected.output": output, "expected.weights": weights}
    if "cache" not in ours:
        tensors |= {"gradient.output": dy} | {f"gradient.{key}": value.grad for key, value in inputs.items()}
        gradients = by_our_names(model, lambda parameter: parameter.grad)
        tensors |= {f"gradient.{key}": value for key, value in gradients.items()}
    if wrong := [key for key, value in tensors.items() if value.dtype != dtype]:
        raise SystemExit(f"make_fixtures: {name}_{suffix}: not {dtype_name}: {', '.join(wrong)}")
    metadata = metadata_of(ours | {"dtype": dtype_name}, MADE_WITH)
    metadata["model_config"] = json.dumps(json.loads(model.config.to_json_string()))
    write_safetensors(folder / f"model_{name}_{suffix}.safetensors", tensors, metadata)


def write_model_cases(folder):
    if transformers.__version__ != TRANSFORMERS_VERSION:
        raise SystemExit(
            f"make_fixtures: transformers {transformers.__version__} is installed, the fixtures are made with "
            f"{TRANSFORMERS_VERSION} (`pip install transformers=={TRANSFORMERS_VERSION}`)"
        )
    for suffix in DTYPES:
        for name in CASES:
            write_model_case(folder, name, suffix)
    write_rope_tables(folder)


# --- RoPE's tables of models in use ----------------------------------------------------------------------------------

TABLES = {
    "plain": (16, rope(10000.0)),
    "linear": (16, rope(10000.0, kind="linear", factor=4.0)),
    # Llama 3.1's numbers
    "llama3": (
        64,
        rope(
            500000.0,
            kind="llama3",
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_seq_len=8192,
        ),
    ),
    # Qwen2.5's for long texts
    "yarn": (64, rope(1000000.0, kind="yarn", factor=4.0, original_max_seq_len=32768)),
    "yarn_by_hand": (
        32,
        rope(
            150000.0,
            kind="yarn",
            factor=32.0,
            beta_fast=20.0,
            beta_slow=2.0,
            attention_factor=1.25,
            original_max_seq_len=4096,
        ),
    ),
}


def write_rope_tables(folder):
    """NAME.cos and NAME.sin (positions, d_k/2), float64, as the package's Llama computes them in float64. The metadata
    has NAME.config."""
    positions = torch.tensor([0, 1, 7, 1000, 40000])
    tensors, metadata = {"positions": positions}, {}
    for name, (d_k, ours) in TABLES.items():
        layer = {"B": 1, "T": 1, "d_model": d_k, "H": 1, "rope": ours}
        with in_dtype(torch.float64):
            config = transformers.LlamaConfig(**sizes(layer))
            cos, sin = modeling_llama.LlamaRotaryEmbedding(config)(torch.zeros(1, dtype=torch.float64), positions[None])
        tensors |= {f"{name}.cos": cos[0, :, : d_k // 2], f"{name}.sin": sin[0, :, : d_k // 2]}
        metadata |= {f"{name}.{key}": value for key, value in metadata_of(layer, MADE_WITH).items()}
    write_safetensors(folder / "rope_tables.safetensors", tensors, metadata)
