// Between token-wide tensors and heads. The axes must be swapped, not just reshaped: a bare reshape of
// (B, T, H*d_k) to (B, H, T, d_k) has the right shape and mixes tokens into heads.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace attn {

/// Queries, keys and values of one layer, or the three slices of a projection.
struct QueryKeyValue {
  at::Tensor q, k, v;
};

/// (B, T, H*width) to (B, H, T, width): head h takes columns h*width ... (h+1)*width - 1 of every token. A view.
at::Tensor split_heads(const at::Tensor& tokens, std::int64_t heads);

/// (B, H, T, d_k) to (B, T, H*d_k): the inverse. A contiguous copy.
at::Tensor merge_heads(const at::Tensor& heads);

/// Three equal slices of the last axis: q, k, v. Views.
QueryKeyValue split_thirds(const at::Tensor& qkv);

}  // namespace attn
