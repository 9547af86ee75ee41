#include "checks/reference/error_budget.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "checks/reference/number_format.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {

namespace {

std::string words_of(const RoundingSize& size) {
  return size.score > 1.0 ? " times the largest score, " + format_number(size.score, 2) : "";
}

}  // namespace

ErrorBudget budget_from(const at::Tensor& reference, const at::Tensor& plain, std::int64_t length, double score) {
  if (reference.numel() == 0) return {0.0, "nothing to compare"};
  const double plain_error = (plain.to(reference.options()) - reference).abs().max().item<double>();
  return budget_of(plain_error, {reference.abs().max().item<double>(), score}, plain.scalar_type(), length);
}

ErrorBudget budget_of(double honest_error, const RoundingSize& size, at::ScalarType type, std::int64_t length,
                      const std::string& source) {
  const std::string dtype = number_name(type);
  const double budget = 2.0 * honest_error + epsilon_of(type) * size.value();
  if (!std::isfinite(budget)) throw Error("limit: the plain formula is not finite in " + dtype);
  const ErrorBudget cap = cap_of(size, type, length);
  if (cap.max_abs < budget) return cap;
  const std::string size_of_error = " (" + format_number(honest_error, 2) + ")";
  const std::string what = source.empty()
                               ? "the plain formula's error in " + dtype + size_of_error + " against float64 loops"
                               : source + size_of_error;
  return {budget, "twice " + what + ", plus one rounding of the largest value" + words_of(size)};
}

ErrorBudget cap_of(const RoundingSize& size, at::ScalarType type, std::int64_t length) {
  return {64.0 * epsilon_of(type) * std::sqrt(static_cast<double>(length)) * size.value(),
          "64 roundings of " + number_name(type) + " times sqrt(" + std::to_string(length) + ")" + words_of(size)};
}

}  // namespace attn
