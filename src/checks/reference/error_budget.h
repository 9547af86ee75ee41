// How far from the truth an honest computation may be. A limit is computed, carries its reason, and NaN never passes.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace attn {

struct ErrorBudget {
  double max_abs = 0.0;
  std::string why;
};

/// What one rounding becomes on its way through the layer, relative to the rounding itself.
struct RoundingSize {
  double largest = 0.0;  ///< the largest value, or the largest sum of magnitudes behind one: terms may cancel.
  double score = 0.0;    ///< the largest scaled score: softmax turns a rounding of s into s roundings of a weight.

  double value() const { return largest * (1.0 + score); }
};

/// Twice the error that the plain formula makes in `plain`'s dtype against the float64 `reference`, plus one rounding
/// of the largest value, capped at 64 eps sqrt(length) times the largest value; `score` as in RoundingSize.
/// `length` is the longest sum behind an element (T for weights and context).
ErrorBudget budget_from(const at::Tensor& reference, const at::Tensor& plain, std::int64_t length, double score = 0.0);

/// The same where one limit holds for several tensors, from the error that an honest computation makes and what the
/// reason calls it; empty: that of the plain formula.
ErrorBudget budget_of(double honest_error, const RoundingSize& size, at::ScalarType type, std::int64_t length,
                      const std::string& source = "");

/// The cap alone.
ErrorBudget cap_of(const RoundingSize& size, at::ScalarType type, std::int64_t length);

/// error <= budget: false for NaN.
inline bool within(double error, const ErrorBudget& budget) { return error <= budget.max_abs; }

}  // namespace attn
