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

/// Slices of the last axis: q of `query_width`, then k and v alike. Views.
QueryKeyValue split_qkv_widths(const at::Tensor& qkv, std::int64_t query_width);

/// Grouped heads: key head g serves the H / H_kv neighbouring query heads from g * H / H_kv on. Their rows are put
/// below each other, so that one product serves a group and no key is copied:
/// (B, H, T, width) to (B, H_kv, H / H_kv * T, width). H must be a multiple of key_heads.
at::Tensor stack_groups(const at::Tensor& heads, std::int64_t key_heads);

/// The inverse: (B, H_kv, H / H_kv * T, width) to (B, H, T, width).
at::Tensor unstack_groups(const at::Tensor& groups, std::int64_t heads);

}  // namespace attn
