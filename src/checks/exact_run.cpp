#include "checks/exact_run.h"

#include <ATen/ATen.h>

#include <cmath>

#include "checks/reference_run.h"

namespace attn {

std::unique_ptr<Subject> rebuilt_in_float64(Subject& subject) {
  std::unique_ptr<Subject> exact = subject.rebuild(Dtype::kFloat64);
  if (exact != nullptr) exact->train(false);
  return exact;
}

std::optional<ExactRun> exact_run(CheckContext& context, Subject& subject, const AttentionInput& input) {
  if (context.x().scalar_type() == at::kDouble) return std::nullopt;
  std::unique_ptr<Subject> exact = rebuilt_in_float64(subject);
  if (exact == nullptr) return std::nullopt;
  return ExactRun{std::move(exact), in_type(input, at::kDouble)};
}

std::optional<ExactRun> exact_run(CheckContext& context) {
  return exact_run(context, context.subject(), context.input());
}

std::optional<ErrorBudget> exact_limit(CheckContext& context) {
  ReferenceRun& run = context.reference();
  if (!run.why_not().empty()) return std::nullopt;
  const double rounding = 1e-12 * run.plain().size.value() * std::sqrt(static_cast<double>(run.longest_sum()));
  return ErrorBudget{2.0 * rounding,
                     "twice 1e-12 * largest value * sqrt(" + std::to_string(run.longest_sum()) + "): float64 rounding"};
}

}  // namespace attn
