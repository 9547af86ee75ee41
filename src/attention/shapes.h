// The legend of shapes, and the one way to check one. Every tensor in this library is described in these letters:
//
//   B batch · T sequence length (T_q queries, T_k keys where they differ) · d_model width of a token
//   H query heads · H_kv heads of keys and values (grouped heads: fewer than H) · d_k width of one head
//
//   x (B, T, d_model)   q (B, H, T_q, d_k)   k, v (B, H_kv, T_k, d_k)   scores, weights (B, H, T_q, T_k)
//   context (B, H, T_q, d_k)   output (B, T_q, d_model)
//
// T_q and T_k differ with a memory (cross-attention: T_k tokens of another sequence) and with a cache (T_q tokens of
// this call, T_k that have been seen). A single-head layer has no H axis.
//
// Queries are rows, keys are columns, everywhere.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace attn {

inline constexpr std::int64_t kAnySize = -1;

/// Throws ShapeError `query: expected shape (2, -1, 4) (-1 is any), got (2, 3)` unless rank and every size agree.
void check_shape(const at::Tensor& tensor, std::string_view name, const std::vector<std::int64_t>& expected);

/// Throws ShapeError unless both tensors have the same dtype and device.
void check_same_kind(const at::Tensor& tensor, std::string_view name, const at::Tensor& other,
                     std::string_view other_name);

}  // namespace attn
