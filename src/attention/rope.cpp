#include "attention/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attention/shapes.h"
#include "core/error.h"

namespace attn {
namespace {

constexpr double kTurn = 2.0 * 3.14159265358979323846;

/// Grattafiori et al. 2024 (Llama 3.1): pairs that turn seldom in the original length are slowed down, the fast ones
/// are kept, those between are blended by how often they turn.
at::Tensor llama3_frequencies(const at::Tensor& frequency, const RopeScaling& scaling) {
  const at::Tensor turns = frequency * (static_cast<double>(scaling.original_max_seq_len) / kTurn);
  const at::Tensor kept =
      ((turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)).clamp(0.0, 1.0);
  return frequency * (kept + (1.0 - kept) / scaling.factor);
}

/// Peng et al. 2023, section 3.2: the same by a ramp over the pairs, between the two whose turns are beta_fast and
/// beta_slow. The bounds are whole pairs.
at::Tensor yarn_frequencies(const at::Tensor& frequency, const RopeConfig& rope, std::int64_t d_k) {
  const RopeScaling& scaling = rope.scaling;
  const double length = static_cast<double>(scaling.original_max_seq_len), width = static_cast<double>(d_k);
  const auto pair_that_turns = [&](double times) {
    return width * std::log(length / (times * kTurn)) / (2.0 * std::log(rope.theta));
  };
  const double low = std::max(std::floor(pair_that_turns(scaling.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_that_turns(scaling.beta_slow)), width - 1.0);
  if (low == high) high += 0.001;  // a ramp of no width is a step
  const at::Tensor pair = at::arange(d_k / 2, frequency.options());
  const at::Tensor kept = 1.0 - ((pair - low) / (high - low)).clamp(0.0, 1.0);
  return frequency * (kept + (1.0 - kept) / scaling.factor);
}

/// What yarn multiplies cos and sin by, Peng et al. 2023, equation 22.
double table_factor(const RopeScaling& scaling) {
  if (scaling.kind != RopeScalingKind::kYarn) return 1.0;
  return scaling.attention_factor.value_or(scaling.factor <= 1.0 ? 1.0 : 0.1 * std::log(scaling.factor) + 1.0);
}

at::Tensor turned(const at::Tensor& heads, const at::Tensor& cos, const at::Tensor& sin, RopeStyle style) {
  const at::Tensor wide = heads.to(cos.scalar_type());
  const std::int64_t pairs = heads.size(-1) / 2;
  const bool half = style == RopeStyle::kHalf;
  const at::Tensor a = half ? wide.narrow(-1, 0, pairs) : wide.slice(-1, 0, std::nullopt, 2);
  const at::Tensor b = half ? wide.narrow(-1, pairs, pairs) : wide.slice(-1, 1, std::nullopt, 2);
  const at::Tensor first = a * cos - b * sin, second = a * sin + b * cos;  // (..., T, d_k / 2)
  const at::Tensor both = half ? at::cat({first, second}, -1) : at::stack({first, second}, -1).flatten(-2);
  return both.to(heads.scalar_type());
}

}  // namespace

at::Tensor rope_frequencies(const RopeConfig& rope, std::int64_t d_k) {
  if (d_k < 2 || d_k % 2 != 0) throw ShapeError("rope: expected an even d_k, got " + std::to_string(d_k));
  const at::Tensor exponent = at::arange(0, d_k, 2, at::kDouble) / static_cast<double>(d_k);
  const at::Tensor frequency = (-std::log(rope.theta) * exponent).exp();
  switch (rope.scaling.kind) {
    case RopeScalingKind::kNone:
      return frequency;
    case RopeScalingKind::kLinear:
      return frequency / rope.scaling.factor;
    case RopeScalingKind::kLlama3:
      return llama3_frequencies(frequency, rope.scaling);
    case RopeScalingKind::kYarn:
      return yarn_frequencies(frequency, rope, d_k);
  }
  throw std::logic_error("a rope scaling without frequencies");
}

RopeTables rope_tables(const RopeConfig& rope, std::int64_t d_k, std::int64_t first, std::int64_t length,
                       const at::TensorOptions& like) {
  const at::Tensor position = at::arange(first, first + length, at::kDouble).unsqueeze(1);  // (T, 1)
  const at::Tensor angle = position * rope_frequencies(rope, d_k);                          // (T, d_k / 2)
  const double factor = table_factor(rope.scaling);
  const bool exact = c10::typeMetaToScalarType(like.dtype()) == at::kDouble;
  const at::TensorOptions kind = like.dtype(exact ? at::kDouble : at::kFloat);
  return {(angle.cos() * factor).to(kind), (angle.sin() * factor).to(kind)};
}

RotatedQueryKey apply_rope(const at::Tensor& q, const at::Tensor& k, const at::Tensor& cos, const at::Tensor& sin,
                           RopeStyle style) {
  check_shape(sin, "sin", cos.sizes().vec());
  for (const auto& [tensor, name] : {std::pair{&q, "q"}, std::pair{&k, "k"}}) {
    std::vector<std::int64_t> expected(static_cast<std::size_t>(std::max<std::int64_t>(tensor->dim(), 2)), kAnySize);
    expected[expected.size() - 2] = cos.size(0);
    expected.back() = 2 * cos.size(1);
    check_shape(*tensor, name, expected);
  }
  return {turned(q, cos, sin, style), turned(k, cos, sin, style)};
}

}  // namespace attn
