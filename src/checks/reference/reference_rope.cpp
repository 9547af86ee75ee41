#include "checks/reference/reference_rope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <stdexcept>

namespace attn {
namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;

/// Wavelengths below original / high_freq_factor keep their frequency, those above original / low_freq_factor have it
/// divided, between them it is blended (Llama 3.1).
double llama3(const RopeScaling& scaling, double frequency) {
  const double wavelength = kTurn / frequency;
  const double original = static_cast<double>(scaling.original_max_seq_len);
  if (wavelength < original / scaling.high_freq_factor) return frequency;
  if (wavelength > original / scaling.low_freq_factor) return frequency / scaling.factor;
  const double kept =
      (original / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - kept) * frequency / scaling.factor + kept * frequency;
}

/// The (fractional) pair that turns so many times in the original length: turns = original theta^(-2c/d_k) / (2 pi).
double pair_that_turns(double turns, const RopeConfig& rope, double d_k) {
  const double original = static_cast<double>(rope.scaling.original_max_seq_len);
  return d_k * std::log(original / (turns * kTurn)) / (2.0 * std::log(rope.theta));
}

/// Pairs up to the one that turns beta_fast times keep their frequency, those from the one that turns beta_slow times
/// on have it divided, between them it is blended along a straight line (Peng et al. 2023, section 3.2; the line runs
/// over the number of the pair and between whole numbers, as in the models that use it).
double yarn(const RopeConfig& rope, double d_k, double c, double frequency) {
  const double first = std::max(std::floor(pair_that_turns(rope.scaling.beta_fast, rope, d_k)), 0.0);
  double last = std::min(std::ceil(pair_that_turns(rope.scaling.beta_slow, rope, d_k)), d_k - 1.0);
  if (first == last) last += 0.001;
  const double divided = std::clamp((c - first) / (last - first), 0.0, 1.0);
  return divided * frequency / rope.scaling.factor + (1.0 - divided) * frequency;
}

/// `direction` 1 turns forward, -1 back.
std::vector<double> turned(const RopeConfig& rope, std::int64_t d_k, const std::vector<double>& heads,
                           const std::vector<std::int64_t>& positions, double direction) {
  const std::vector<double> frequencies = reference_rope_frequencies(rope, d_k);
  const double factor = reference_rope_factor(rope);
  std::vector<double> result(heads.size());
  const std::size_t width = static_cast<std::size_t>(d_k);
  for (std::size_t row = 0; row * width < heads.size(); ++row) {
    const double position = static_cast<double>(positions[row % positions.size()]);
    for (std::size_t c = 0; c < frequencies.size(); ++c) {
      const double angle = direction * position * frequencies[c];
      const double cos = factor * std::cos(angle), sin = factor * std::sin(angle);
      const ReferencePair pair = reference_rope_pair(rope.style, static_cast<std::int64_t>(c), d_k);
      const std::size_t first = row * width + static_cast<std::size_t>(pair.first);
      const std::size_t second = row * width + static_cast<std::size_t>(pair.second);
      result[first] = heads[first] * cos - heads[second] * sin;
      result[second] = heads[first] * sin + heads[second] * cos;
    }
  }
  return result;
}

}  // namespace

std::vector<double> reference_rope_frequencies(const RopeConfig& rope, std::int64_t d_k) {
  std::vector<double> frequencies;
  for (std::int64_t c = 0; c < d_k / 2; ++c) {
    const double pair = static_cast<double>(c), width = static_cast<double>(d_k);
    const double frequency = std::pow(rope.theta, -2.0 * pair / width);
    switch (rope.scaling.kind) {
      case RopeScalingKind::kNone:
        frequencies.push_back(frequency);
        break;
      case RopeScalingKind::kLinear:
        frequencies.push_back(frequency / rope.scaling.factor);
        break;
      case RopeScalingKind::kLlama3:
        frequencies.push_back(llama3(rope.scaling, frequency));
        break;
      case RopeScalingKind::kYarn:
        frequencies.push_back(yarn(rope, width, pair, frequency));
        break;
    }
  }
  return frequencies;
}

double reference_rope_factor(const RopeConfig& rope) {
  if (rope.scaling.kind != RopeScalingKind::kYarn) return 1.0;
  if (rope.scaling.attention_factor.has_value()) return *rope.scaling.attention_factor;
  if (rope.scaling.factor <= 1.0) return 1.0;
  return 0.1 * std::log(rope.scaling.factor) + 1.0;
}

ReferencePair reference_rope_pair(RopeStyle style, std::int64_t c, std::int64_t d_k) {
  switch (style) {
    case RopeStyle::kHalf:
      return {c, c + d_k / 2};
    case RopeStyle::kAdjacent:
      return {2 * c, 2 * c + 1};
  }
  throw std::logic_error("a rope style without pairs");
}

std::vector<double> reference_rope(const RopeConfig& rope, std::int64_t d_k, const std::vector<double>& heads,
                                   const std::vector<std::int64_t>& positions) {
  return turned(rope, d_k, heads, positions, 1.0);
}

std::vector<double> reference_rope_backward(const RopeConfig& rope, std::int64_t d_k,
                                            const std::vector<double>& d_heads,
                                            const std::vector<std::int64_t>& positions) {
  return turned(rope, d_k, d_heads, positions, -1.0);
}

}  // namespace attn
