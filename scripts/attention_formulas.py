"""One attention layer with everything our configs can ask for, as formulas in PyTorch.

scripts/check_with_pytorch judges saved traces by it. It takes the short way on purpose: whole-tensor formulas, a
float64 table of angles, a table of who may look at whom made with Python's own loops; and it shares nothing with this
project's C++ code. Shapes: x (B, T_q, d_model), q (B, H, T_q, d_k), k and v (B, H_kv, T_k, d_k) before their heads are
repeated.
"""

import math

import torch

# --- positions -------------------------------------------------------------------------------------------------------


def rope_frequencies(rope, d_k):
    """(d_k/2) angles a position, float64, and the factor of cos and sin."""
    theta, scaling = rope["theta"], rope.get("scaling") or {"kind": "none"}
    plain = [theta ** (-2 * pair / d_k) for pair in range(d_k // 2)]
    kind, factor, magnitude = scaling["kind"], scaling.get("factor", 1.0), 1.0
    original = scaling.get("original_max_seq_len", 0)
    if kind == "linear":
        plain = [frequency / factor for frequency in plain]
    elif kind == "llama3":
        low, high = scaling.get("low_freq_factor", 1.0), scaling.get("high_freq_factor", 4.0)

        def kept(frequency):  # how much of the frequency stays: 1 for short wavelengths, 0 for long ones
            turns = original * frequency / (2 * math.pi)
            return min(1.0, max(0.0, (turns - low) / (high - low)))

        plain = [kept(f) * f + (1 - kept(f)) * f / factor for f in plain]
    elif kind == "yarn":
        magnitude = scaling.get("attention_factor")
        if magnitude is None:
            magnitude = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0

        def pair_that_turns(times):  # within the original length; a real number
            return d_k * math.log(original / (2 * math.pi * times)) / (2 * math.log(theta))

        first = max(math.floor(pair_that_turns(scaling.get("beta_fast", 32.0))), 0)
        last = min(math.ceil(pair_that_turns(scaling.get("beta_slow", 1.0))), d_k - 1)
        width = last - first or 0.001
        ramp = [min(1.0, max(0.0, (pair - first) / width)) for pair in range(d_k // 2)]
        plain = [f * (1 - r) + f / factor * r for f, r in zip(plain, ramp)]
    return torch.tensor(plain, dtype=torch.float64), magnitude


def rotated(heads, rope):
    """(B, heads, T, d_k), each pair of channels as a complex number, times e^(i angle)."""
    d_k, length = heads.shape[-1], heads.shape[-2]
    frequencies, magnitude = rope_frequencies(rope, d_k)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
    cos, sin = (angles.cos() * magnitude).to(heads.dtype), (angles.sin() * magnitude).to(heads.dtype)
    pairs = heads.unflatten(-1, (2, d_k // 2)) if rope["style"] == "half" else heads.unflatten(-1, (-1, 2)).mT
    a, b = pairs[..., 0, :], pairs[..., 1, :]
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-2)
    return (turned if rope["style"] == "half" else turned.mT).flatten(-2)


def alibi_slopes(heads):
    """Press et al. 2022: 2^(-8/n), 2^(-16/n) ... for n heads, n a power of two; else those of the next lower n, then
    every second one of 2n."""
    lower = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * (place + 1) / lower) for place in range(lower)]
    return slopes + [2 ** (-8 * (2 * place + 1) / (2 * lower)) for place in range(heads - lower)]


# --- who may look at whom --------------------------------------------------------------------------------------------


def own_mask(mask, read_mask):
    """A function of (i, j). `read_mask(file, name)` gives the rows of a mask that lies in a file."""
    if isinstance(mask, str):
        mask = {"kind": mask}
    if isinstance(mask, dict) and "file" in mask:
        mask = read_mask(mask["file"], mask.get("name", "mask"))
    if isinstance(mask, list):
        return lambda i, j: bool(mask[i][j])
    if mask["kind"] == "bidirectional":
        return lambda i, j: True
    if mask["kind"] == "prefix":
        return lambda i, j: j <= i or (i < mask["length"] and j < mask["length"])
    if mask["kind"] == "dilated":
        return lambda i, j: (i - j) % mask["stride"] == 0
    starts = [sum(mask["lengths"][:count]) for count in range(len(mask["lengths"]) + 1)]
    return lambda i, j: all((i >= start) == (j >= start) for start in starts)


def visible(config, queries, keys, read_mask):
    """(B or 1, 1, T_q, T_k), true = may look."""
    rules = []
    if config["causal"]:
        rules.append(lambda i, j: j <= i)
    if window := config.get("window"):
        rules.append(lambda i, j: abs(i - j) < window)
    if config.get("mask") is not None:
        rules.append(own_mask(config["mask"], read_mask))
    table = [[all(rule(i, j) for rule in rules) for j in range(keys)] for i in range(queries)]
    may_look = torch.tensor(table)[None, None]
    if config.get("padding"):
        real = torch.zeros(config["B"], keys, dtype=torch.bool)
        for item, length in enumerate(config["lengths"]):
            real[item, slice(keys - length, None) if config["padding"] == "left" else slice(length)] = True
        may_look = may_look & real[:, None, None, :]
    return may_look


# --- the layer -------------------------------------------------------------------------------------------------------


def project(x, parameters, name):
    return torch.nn.functional.linear(x, parameters[name + ".weight"], parameters.get(name + ".bias"))


def with_heads(tokens, heads):
    """(B, T, heads * d_k) to (B, heads, T, d_k)."""
    return tokens.unflatten(-1, (heads, -1)).movedim(2, 1)


def query_key_value(config, parameters, x, source):
    """Before positions: q (B, H, T_q, d_k), k and v (B, H_kv, T_k, d_k)."""
    heads, groups, d_k = config["H"], config.get("H_kv") or config["H"], config["d_k"]
    if config["qkv"] == "separate":
        q = project(x, parameters, "q_proj")
        k, v = project(source, parameters, "k_proj"), project(source, parameters, "v_proj")
        return with_heads(q, heads), with_heads(k, groups), with_heads(v, groups)
    if config["qkv"] == "fused":
        q, k, v = project(x, parameters, "c_attn").split([heads * d_k, groups * d_k, groups * d_k], dim=-1)
        return with_heads(q, heads), with_heads(k, groups), with_heads(v, groups)
    grouped = project(x, parameters, "qkv_proj").unflatten(-1, (groups, heads // groups + 2, d_k))
    q, k, v = grouped[..., :-2, :].flatten(2, 3), grouped[..., -2, :], grouped[..., -1, :]
    return q.movedim(2, 1), k.movedim(2, 1), v.movedim(2, 1)


def rms_norm(heads, weight, eps):
    return heads / (heads.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def attention(config, parameters, x, memory=None, read_mask=None):
    """output (B, T_q, d_model) and weights (B, H, T_q, T_k), without dropout. `config` has our keys; H_kv and the keys
    that switch something on may be missing or null."""
    q, k, v = query_key_value(config, parameters, x, x if memory is None else memory)
    if config.get("qk_norm"):
        eps = config.get("qk_norm_eps", 1e-6)
        q, k = rms_norm(q, parameters["q_norm.weight"], eps), rms_norm(k, parameters["k_norm.weight"], eps)
    if config.get("rope"):
        q, k = rotated(q, config["rope"]), rotated(k, config["rope"])
    shared_by = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared_by, dim=1), v.repeat_interleave(shared_by, dim=1)

    logits = q @ k.mT * (config.get("scale") or q.shape[-1] ** -0.5)
    if softcap := config.get("softcap"):
        logits = softcap * torch.tanh(logits / softcap)
    queries, keys = logits.shape[-2:]
    if config.get("alibi"):
        distance = (torch.arange(queries)[:, None] - torch.arange(keys)).abs()
        slopes = torch.tensor(alibi_slopes(config["H"]), dtype=torch.float64)
        logits = logits - (slopes[:, None, None] * distance).to(logits.dtype)

    may_look = visible(config, queries, keys, read_mask)
    has_a_key = may_look.any(-1, keepdim=True)
    logits = logits.masked_fill(~may_look & has_a_key, -math.inf)  # a row without a key is put to 0 below
    if config.get("sink"):
        sinks = parameters["sinks"][None, :, None, None].expand(*logits.shape[:-1], 1)
        logits = torch.cat([logits, sinks], dim=-1)
    weights = torch.softmax(logits, dim=-1)[..., :keys] * has_a_key
    merged = (weights @ v).movedim(1, 2).flatten(2)
    return project(merged, parameters, "c_proj" if config["qkv"] == "fused" else "o_proj"), weights
