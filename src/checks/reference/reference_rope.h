// The independent judge's rotary position embedding: its own frequencies, its own pairs, in plain loops over double.
// plain_layer.h takes the frequencies from here. No LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "config/rope_config.h"

namespace attn {

/// By how much each pair of a head of width d_k turns from one position to the next: (d_k / 2) radians.
std::vector<double> reference_rope_frequencies(const RopeConfig& rope, std::int64_t d_k);

/// What cos and sin are multiplied by: 1 except for yarn.
double reference_rope_factor(const RopeConfig& rope);

/// The two channels of pair c of a head of width d_k.
struct ReferencePair {
  std::int64_t first = 0, second = 0;
};
ReferencePair reference_rope_pair(RopeStyle style, std::int64_t c, std::int64_t d_k);

/// Every head of `heads` (..., positions, d_k), row-major, turned by its position:
/// (a, b) -> (a cos - b sin, a sin + b cos), times the factor.
std::vector<double> reference_rope(const RopeConfig& rope, std::int64_t d_k, const std::vector<double>& heads,
                                   const std::vector<std::int64_t>& positions);

/// Takes the gradient of what reference_rope() gave back to `heads`: turned the other way, times the factor.
std::vector<double> reference_rope_backward(const RopeConfig& rope, std::int64_t d_k,
                                            const std::vector<double>& d_heads,
                                            const std::vector<std::int64_t>& positions);

}  // namespace attn
