// The project's own random numbers: the same on every platform, device and dtype, which no library's are.
// splitmix64 (Steele, Lea, Flood 2014) and Box-Muller in double, rounded to float32, so that every dtype starts from
// the same numbers and last-bit differences between maths libraries vanish.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace attn {

/// What the numbers are for. Each use has its own stream, so that adding one does not change another.
enum class RandomStream : std::uint64_t {
  kInput = 1,     ///< x
  kTokens = 2,    ///< token ids
  kGradient = 3,  ///< dy, the direction of the backward pass
  kChecks = 4,    ///< whatever verify draws
  kMemory = 5,    ///< the memory of cross-attention
};

/// Draws from N(0, 1) as float64 on the CPU, each number exact in float32.
at::Tensor random_normal(const std::vector<std::int64_t>& shape, std::uint64_t seed, RandomStream stream);

/// Draws whole numbers from [0, limit) as int64 on the CPU.
at::Tensor random_integers(const std::vector<std::int64_t>& shape, std::int64_t limit, std::uint64_t seed,
                           RandomStream stream);

}  // namespace attn
