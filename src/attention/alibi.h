// Attention with linear biases (ALiBi, Press et al. 2022): the further away a key is, the lower its score, each head by
// its own slope. Stands in the place of a position embedding.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace attn {

/// Head h of n = 2^p heads: 2^(-8 (h + 1) / n). Where H is no power of two: those of the largest power of two below it,
/// then every second one of twice as many. (H), float64.
at::Tensor alibi_slopes(std::int64_t heads);

/// -slope * |i - j| with the queries at the end of the keys' sequence: (H, T_q, T_k), in the kind of `like`.
at::Tensor alibi_bias(std::int64_t heads, std::int64_t query_len, std::int64_t key_len, const at::TensorOptions& like);

}  // namespace attn
