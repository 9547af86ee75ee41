#include "experiment/random_input.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <numbers>

namespace attn {
namespace {

/// splitmix64, Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014.
class SplitMix64 {
 public:
  SplitMix64(std::uint64_t seed, RandomStream stream) : state_(seed) {
    // The stream's number, mixed once, keeps streams of neighbouring seeds apart.
    state_ = next() ^ (static_cast<std::uint64_t>(stream) * 0xD1342543DE82EF95U);
  }

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31);
  }

  /// In (0, 1]: never 0, so that its logarithm is finite.
  double next_unit() { return static_cast<double>((next() >> 11) + 1) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace

at::Tensor random_normal(const std::vector<std::int64_t>& shape, std::uint64_t seed, RandomStream stream) {
  SplitMix64 generator(seed, stream);
  at::Tensor result = at::empty(shape, at::kDouble);
  double* values = result.mutable_data_ptr<double>();
  const std::int64_t count = result.numel();
  for (std::int64_t index = 0; index < count; index += 2) {
    const double radius = std::sqrt(-2.0 * std::log(generator.next_unit()));
    const double angle = 2.0 * std::numbers::pi * generator.next_unit();
    values[index] = static_cast<float>(radius * std::cos(angle));
    if (index + 1 < count) values[index + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return result;
}

at::Tensor random_integers(const std::vector<std::int64_t>& shape, std::int64_t limit, std::uint64_t seed,
                           RandomStream stream) {
  SplitMix64 generator(seed, stream);
  at::Tensor result = at::empty(shape, at::kLong);
  std::int64_t* values = result.mutable_data_ptr<std::int64_t>();
  for (std::int64_t index = 0; index < result.numel(); ++index) {
    // The remainder's bias is below limit / 2^64: far too small to be seen in a vocabulary.
    values[index] = static_cast<std::int64_t>(generator.next() % static_cast<std::uint64_t>(limit));
  }
  return result;
}

}  // namespace attn
