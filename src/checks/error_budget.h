// How far from the truth an honest computation may be. A limit is computed, carries its reason, and NaN never passes.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace attn {

struct ErrorBudget {
  double max_abs = 0.0;
  std::string why;
};

/// Twice the error that the plain formula makes in `plain`'s dtype against the float64 `reference`, plus one rounding
/// of the largest value, capped at 64 eps sqrt(length) times the largest value.
/// `length` is the longest sum behind an element (T for weights and context).
ErrorBudget budget_from(const at::Tensor& reference, const at::Tensor& plain, std::int64_t length);

/// The same from the plain formula's error and the largest value, where one limit holds for several tensors.
ErrorBudget budget_of(double plain_error, double largest, at::ScalarType type, std::int64_t length);

/// The cap alone: for a tensor whose largest value is `largest`.
ErrorBudget cap_of(double largest, at::ScalarType type, std::int64_t length);

/// error <= budget: false for NaN.
inline bool within(double error, const ErrorBudget& budget) { return error <= budget.max_abs; }

}  // namespace attn
