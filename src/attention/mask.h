// Masks say which keys a query may look at. true = may look. They are built here, combined by AND, and applied once,
// as a fill of -inf before softmax (attention_core.cpp). Never a large finite number, never two masks added.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "config/mask_config.h"

namespace attn {

/// Where queries and keys stand in the sequence: query i at first_query + i, key j at first_key + j.
struct MaskPlace {
  std::int64_t query_len = 0, key_len = 0;
  std::int64_t first_query = 0, first_key = 0;
};

/// Queries are the last tokens of the keys' sequence: first_query = key_len - query_len.
MaskPlace bottom_right(std::int64_t query_len, std::int64_t key_len);

/// Causal mask, aligned to the bottom right corner: query i may look at key j when j <= i + (T_k - T_q).
///
///   T_q = 2, T_k = 4 (1 = may look):     T_q = 3, T_k = 2:
///       1 1 1 0                              0 0   <- sees no key: its weights and context are 0
///       1 1 1 1                              1 0
///                                            1 1
///
/// Returns (T_q, T_k), bool.
at::Tensor causal_mask(std::int64_t query_len, std::int64_t key_len);

/// The last `window` keys up to the query's own position, which counts as one of them; with `both_sides` as many on
/// the other side. It hides nothing of the future of its own: |i - j| < window, or i - j < window. (T_q, T_k), bool.
at::Tensor window_mask(const MaskPlace& place, std::int64_t window, bool both_sides, at::Device device);

/// One of the masks of config/mask_config.h. (T_q, T_k), bool. Throws ShapeError for rows that are too few.
at::Tensor own_mask(const MaskConfig& mask, const MaskPlace& place, at::Device device);

/// Both, where there are both; either, where there is one.
std::optional<at::Tensor> both_masks(const std::optional<at::Tensor>& a, const std::optional<at::Tensor>& b);

}  // namespace attn
