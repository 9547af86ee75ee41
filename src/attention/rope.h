// Rotary position embedding: q and k are turned by their positions, pair of channels by pair, so that a score depends
// on how far apart the two tokens are, i - j, and not on where they stand. v is not turned.
//
//   (a, b) -> (a cos - b sin, a sin + b cos),   angle = position * theta^(-2c / d_k)      Su et al. 2021, equation 34
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "config/rope_config.h"

namespace attn {

/// cos and sin of every position and pair, (T, d_k / 2), times the scaling's factor where it has one (yarn).
struct RopeTables {
  at::Tensor cos, sin;
};

struct RotatedQueryKey {
  at::Tensor q, k;
};

/// What pair c turns by from one position to the next, (d_k / 2) float64. d_k must be even.
at::Tensor rope_frequencies(const RopeConfig& rope, std::int64_t d_k);

/// Positions first ... first + length - 1. Worked out in float64 whatever the dtype of the layer: in bfloat16 positions
/// 256 and 257 are one and the same. float32, or float64 for q and k in float64, on their device.
RopeTables rope_tables(const RopeConfig& rope, std::int64_t d_k, std::int64_t first, std::int64_t length,
                       const at::TensorOptions& like);

/// q (..., T, d_k), k of as many tokens, cos and sin (T, d_k / 2). Turned in the dtype of the tables, then converted
/// back to that of q and k. Throws ShapeError.
RotatedQueryKey apply_rope(const at::Tensor& q, const at::Tensor& k, const at::Tensor& cos, const at::Tensor& sin,
                           RopeStyle style);

}  // namespace attn
