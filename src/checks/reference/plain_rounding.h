// What one rounding becomes on its way through attention, read from the plain formula's own numbers. The limits of
// sdpa-* and reference-* are built on it; see error_budget.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "checks/reference/error_budget.h"
#include "checks/reference/plain_layer.h"

namespace attn {

/// By how many roundings the scores of q (B, H, T_q, d_k) and k (B, H_kv, T_k, d_k) may be off, as RoundingSize::score
/// has it: the size of what each step adds up to. `of_magnitudes`: q and k carry roundings of their own, channel by
/// channel, which do not cancel where the products do. A softcap flattens large scores. A bias counts by the weights of
/// the keys it belongs to: a far key's large bias is rounded, but nobody looks at it.
double largest_score(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules, const at::Tensor& mask,
                     bool of_magnitudes = false);

/// Of the output. What the sums behind it hold: their terms may cancel, their roundings do not.
RoundingSize rounding_size(const LayerInput& input, const PlainLayerOutput& output);

}  // namespace attn
