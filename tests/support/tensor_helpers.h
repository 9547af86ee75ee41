// Small words for tests about tensors: make one, compare two, listen to a layer.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "attention/observer.h"

namespace attn::test {

inline constexpr std::array kAllDtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};

/// These numbers, row by row, as float64.
inline at::Tensor tensor_of(at::IntArrayRef shape, const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).reshape(shape);
}

/// N(0, 1) from this seed; the numbers do not depend on the dtype, beside its rounding.
inline at::Tensor random_tensor(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType dtype = at::kDouble) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kDouble).to(dtype);
}

/// Largest absolute value, in float64; NaN when there is one anywhere; 0 for no elements.
inline double largest(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0.0 : tensor.detach().to(at::kDouble).abs().max().item<double>();
}

/// Largest absolute difference, in float64; NaN when there is one anywhere. The shapes must agree.
inline double max_difference(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "max_difference of different shapes: ", a.sizes(), " and ", b.sizes());
  return largest(a.detach().to(at::kDouble) - b.detach().to(at::kDouble));
}

/// The lessons' limit for parity: `relative` times the largest value, but of 1 at least.
inline double limit_for(const at::Tensor& expected, double relative) {
  return relative * std::max(1.0, largest(expected));
}

/// Same shape, same dtype, equal numbers without any tolerance (false when there is a NaN).
inline bool identical(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && at::equal(a, b);
}

inline bool all_finite(const at::Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

/// Keeps every announced tensor, and a copy of its numbers as they were.
class CapturingObserver : public AttentionObserver {
 public:
  struct Announced {
    Step step;
    at::Tensor tensor;
    at::Tensor copy;
  };

  void on_step(Step step, const at::Tensor& value) override {
    announced.push_back({step, value, value.detach().clone()});
  }

  /// The tensor of a step that was announced exactly once.
  at::Tensor at(Step step) const {
    at::Tensor found;
    for (const Announced& entry : announced) {
      if (entry.step != step) continue;
      TORCH_CHECK(!found.defined(), "announced twice: ", step_name(step));
      found = entry.tensor;
    }
    TORCH_CHECK(found.defined(), "never announced: ", step_name(step));
    return found;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const Announced& entry : announced) result.emplace_back(step_name(entry.step));
    return result;
  }

  std::vector<Announced> announced;
};

}  // namespace attn::test
