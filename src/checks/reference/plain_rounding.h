// What one rounding becomes on its way through attention, read from the plain formula's own numbers. The limits of
// sdpa-* and reference-* are built on it; see error_budget.h.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "checks/reference/error_budget.h"
#include "checks/reference/plain_layer.h"

namespace attn {

/// By how many roundings the scores of q (B, H, T_q, d_k) and k (B, H_kv, T_k, d_k) may be off, as RoundingSize::score
/// has it: the size of what each step adds up to. `of_magnitudes`: q and k carry roundings of their own, channel by
/// channel, which do not cancel where the products do. A softcap flattens large scores, roundings and all, and leaves
/// small ones, whose products may be as large and cancel. A bias counts by the weights of the keys it belongs to: a far
/// key's large bias is rounded, but nobody looks at it.
double largest_score(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules, const at::Tensor& mask,
                     bool of_magnitudes = false);

/// Of the output. What the sums behind it hold: their terms may cancel, their roundings do not.
RoundingSize rounding_size(const LayerInput& input, const PlainLayerOutput& output);

/// How far the gradients of sum(output * d_output) move at most when every number of x, memory, parameters and d_output
/// is off by one rounding of `type`, up or down at random: an honest backward pass gives the exact gradients of such an
/// input (backward error; Higham, Accuracy and Stability of Numerical Algorithms, 2002, 1.5). A gradient is a sum over
/// all tokens, whose terms may cancel where their roundings do not, and this sees by how much. The largest of three
/// tries, worked out in float64. `seed` as of at::Generator. With a norm of q and k at least one rounding of the
/// input's gradient as it is before the norm takes away what lies along q and k: with one channel that is all of it,
/// whatever the input.
double gradient_change_by_rounding(const LayerInput& input, const at::Tensor& d_output, at::ScalarType type,
                                   std::uint64_t seed);

}  // namespace attn
