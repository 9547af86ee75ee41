// Masks say which keys a query may look at. true = may look. They are built here, combined by AND, and applied once,
// as a fill of -inf before softmax (attention_core.cpp). Never a large finite number, never two masks added.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace attn {

/// Causal mask, aligned to the bottom right corner: query i may look at key j when j <= i + (T_k - T_q).
///
///   T_q = 2, T_k = 4 (1 = may look):     T_q = 3, T_k = 2:
///       1 1 1 0                              0 0   <- sees no key: its weights and context are 0
///       1 1 1 1                              1 0
///                                            1 1
///
/// Returns (T_q, T_k), bool.
at::Tensor causal_mask(std::int64_t query_len, std::int64_t key_len);

}  // namespace attn
