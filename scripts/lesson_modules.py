"""The lessons' attention modules in PyTorch, written down once more without any of this project's C++ code.

scripts/make_fixtures runs them to make the fixtures under tests/data/; scripts/check_with_pytorch takes the embedding.
They do what the modules of the two lessons do (one fused projection with each head's q, k, v side by side; one
fused projection in thirds; three projections; a single head) and take the short way on purpose: whole-tensor formulas,
no options beside those a case needs. Parameters have the names that they have in our weights files.
"""

import math

import torch
from torch import nn


def attend(q, k, v, causal):
    """softmax(q k^T / sqrt(d_k)) v over the last two axes, whatever stands before them."""
    logits = torch.matmul(q, k.mT) / math.sqrt(q.shape[-1])
    if causal:
        length = q.shape[-2]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        logits = logits.masked_fill(future, -math.inf)
    weights = torch.softmax(logits, dim=-1)
    return torch.matmul(weights, v), weights


class PerHeadFused(nn.Module):
    """Lesson 1: qkv_proj gives q, k and v of head 0, then of head 1, and so on."""

    def __init__(self, d_model, heads, d_k, bias, causal):
        super().__init__()
        self.heads, self.d_k, self.causal = heads, d_k, causal
        self.qkv_proj = nn.Linear(d_model, 3 * heads * d_k, bias=bias)
        self.o_proj = nn.Linear(heads * d_k, d_model, bias=bias)

    def forward(self, x):
        batch, length, _ = x.shape
        by_head = self.qkv_proj(x).reshape(batch, length, self.heads, 3 * self.d_k).transpose(1, 2)
        context, weights = attend(*by_head.split(self.d_k, dim=-1), self.causal)
        return self.o_proj(context.transpose(1, 2).reshape(batch, length, -1)), weights


def with_heads(tokens, heads):
    """(B, T, H*d_k) to (B, H, T, d_k)."""
    return tokens.unflatten(-1, (heads, -1)).movedim(2, 1)


class ThirdsFused(nn.Module):
    """Lesson 2: c_attn gives q of all heads, then k of all heads, then v of all heads."""

    def __init__(self, d_model, heads, d_k, bias, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.c_attn = nn.Linear(d_model, 3 * heads * d_k, bias=bias)
        self.c_proj = nn.Linear(heads * d_k, d_model, bias=bias)

    def forward(self, x):
        q, k, v = (with_heads(part, self.heads) for part in self.c_attn(x).tensor_split(3, dim=-1))
        context, weights = attend(q, k, v, self.causal)
        return self.c_proj(context.movedim(1, 2).flatten(2)), weights


class Separate(nn.Module):
    """Lesson 2's other choice: a projection each for q, k and v. One head when told so: then no head axis."""

    def __init__(self, d_model, heads, d_k, bias, causal, head_axis=True):
        super().__init__()
        self.heads, self.causal, self.head_axis = heads, causal, head_axis
        self.q_proj = nn.Linear(d_model, heads * d_k, bias=bias)
        self.k_proj = nn.Linear(d_model, heads * d_k, bias=bias)
        self.v_proj = nn.Linear(d_model, heads * d_k, bias=bias)
        self.o_proj = nn.Linear(heads * d_k, d_model, bias=bias)

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.head_axis:
            q, k, v = (with_heads(part, self.heads) for part in (q, k, v))
        context, weights = attend(q, k, v, self.causal)
        if self.head_axis:
            context = context.movedim(1, 2).flatten(2)
        return self.o_proj(context), weights


class Embedding(nn.Module):
    """Lesson 2's input: a vector per token id, plus a vector per position (learned, or sin and cos, or none)."""

    def __init__(self, vocab_size, d_model, max_seq_len, positions):
        super().__init__()
        self.positions = positions
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        if positions == "learned":
            self.position_embedding = nn.Embedding(max_seq_len, d_model)

    def forward(self, tokens, places=None):
        """`places` (B, T): where each token stands, when not at 0, 1, 2 ..."""
        x = self.token_embedding(tokens)
        if places is None:
            places = torch.arange(tokens.shape[1])
        if self.positions == "learned":
            return x + self.position_embedding.weight[places]
        if self.positions == "sinusoidal":
            return x + sinusoids(tokens.shape[1], x.shape[-1]).to(x.dtype)[places]
        return x


def sinusoids(length, width):
    """Vaswani et al. 2017, section 3.5: even columns sin, odd columns cos, wavelengths 2 pi ... 10000 * 2 pi."""
    rows = [
        [
            (math.cos if column % 2 else math.sin)(place / 10000 ** (2 * (column // 2) / width))
            for column in range(width)
        ]
        for place in range(length)
    ]
    return torch.tensor(rows, dtype=torch.float64)
