// reference-forward, reference-weights and reference-backward: the whole layer against the float64 loops.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "checks/check_context.h"
#include "checks/reference/reference_layer.h"
#include "checks/reference_run.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

/// One tensor of the layer beside what it should be.
struct Compared {
  std::string what;  ///< "gradient of x"; empty when it is the only one.
  at::Tensor layer, loops, plain;
  const AxisNames* axes;
  std::int64_t row_axis = -1;  ///< of layer, loops and plain, which hold the judged rows only; -1: they hold all.
};

const AxisNames kParameterAxes{"row", "column"};

std::vector<Compared> output_of(ReferenceRun& run) {
  return {{"", run.layer().output, run.loops().output, run.plain().output, &kTokenAxes, 1}};
}

std::vector<Compared> weights_of(ReferenceRun& run) {
  if (!run.layer().weights.defined()) return {};
  return {{"", run.layer().weights, run.loops().weights, run.plain().weights, &kPairAxes, 2}};
}

std::vector<Compared> gradients_of(ReferenceRun& run) {
  std::vector<Compared> gradients;
  const std::map<std::string, at::Tensor>& layer = run.layer().gradients;
  for (const auto& [name, loops] : run.loops_gradients()) {
    const auto found = layer.find(name);
    const at::Tensor own = found == layer.end() ? at::Tensor() : found->second;
    const AxisNames* axes = name == "x" || name == "memory" ? &kTokenAxes : &kParameterAxes;
    gradients.push_back({"gradient of " + name, own, loops, run.plain_gradients().at(name), axes});
  }
  return gradients;
}

enum class Judged { kOutput, kWeights, kGradients };

std::vector<Compared> compared_of(ReferenceRun& run, Judged judged) {
  switch (judged) {
    case Judged::kOutput:
      return output_of(run);
    case Judged::kWeights:
      return weights_of(run);
    case Judged::kGradients:
      return gradients_of(run);
  }
  throw Error("reference: unknown part of a layer");
}

/// The larger one; NaN is worse than any number.
double worse_of(double a, double b) { return std::isnan(a) || a >= b ? a : b; }

/// One limit for all tensors of a check, so that gradients are held to the largest one of the layer: some are 0 by
/// right, and their own size says nothing.
ErrorBudget limit_of(ReferenceRun& run, const std::vector<Compared>& all, Judged judged) {
  RoundingSize size{0.0, run.plain().size.score};
  double plain_error = 0.0;
  for (const Compared& one : all) {
    size.largest = std::max(size.largest, one.loops.abs().max().item<double>());
    const double error = (one.plain.to(at::kCPU, at::kDouble) - one.loops).abs_().max().item<double>();
    plain_error = worse_of(plain_error, error);
  }
  if (judged == Judged::kOutput) size.largest = std::max(size.largest, run.plain().size.largest);
  const std::int64_t longest_sum = judged == Judged::kGradients ? run.longest_gradient_sum() : run.longest_sum();
  const at::ScalarType type = all.front().plain.scalar_type();
  // The loops are float64 too, and their own roundings count there.
  const double exact = 1e-12 * size.value() * std::sqrt(static_cast<double>(longest_sum));
  ErrorBudget limit =
      std::isfinite(plain_error) ? budget_of(plain_error, size, type, longest_sum) : cap_of(size, type, longest_sum);
  if (judged == Judged::kGradients && std::isfinite(plain_error)) {
    // Some sixteen steps there and back round as the inputs are rounded once; errors add like the root of their number,
    // four times one: twice here, doubled by budget_of().
    const double two_roundings = 2.0 * run.gradient_rounding();
    const std::string source = "what two roundings of every input do to the gradients";
    const ErrorBudget by_rounding = budget_of(two_roundings, size, type, longest_sum, source);
    if (by_rounding.max_abs > limit.max_abs) limit = by_rounding;
    // The cap is for the plain formula, which may be inexact; this is worked out in float64. A softcap far below the
    // scores goes beyond it: near saturation 1 - tanh^2 is a difference of almost equal numbers.
    const double twice = 2.0 * two_roundings;
    if (twice > limit.max_abs) limit = {twice, "twice " + source + ", worked out in float64"};
  }
  if (type != at::kDouble || exact <= limit.max_abs) return limit;
  return {exact, "1e-12 * largest value * sqrt(" + std::to_string(longest_sum) + "): float64 rounding"};
}

/// At their places in the whole tensor: rows that are not judged have the error 0.
at::Tensor at_their_rows(const at::Tensor& errors, const Compared& one, const ReferenceSample& sample) {
  if (one.row_axis < 0 || sample.rows.empty()) return errors;
  std::vector<std::int64_t> whole = errors.sizes().vec();
  whole[static_cast<std::size_t>(one.row_axis)] = sample.input.x.size(1);
  return at::zeros(whole, errors.options()).index_copy(one.row_axis, at::tensor(sample.rows, at::kLong), errors);
}

struct Outcome {
  double largest_error = 0.0;
  bool all_well = true;
};

/// `in_support`: in float64, beside the run's own precision.
Outcome judge(Findings& findings, ReferenceRun& run, Judged judged, bool in_support) {
  Outcome outcome;
  std::vector<Compared> all = compared_of(run, judged);
  const auto arrived = [&](const Compared& one) {
    if (one.layer.defined() && one.layer.sizes() == one.loops.sizes()) return true;
    outcome.all_well = false;
    findings.fail(one.layer.defined() ? one.what + " has the shape " + format_shape(one.layer.sizes().vec())
                                      : "no " + one.what + " arrives");
    return false;
  };
  std::erase_if(all, [&](const Compared& one) { return !arrived(one); });
  if (all.empty()) return outcome;
  const ErrorBudget limit = limit_of(run, all, judged);
  for (const Compared& one : all) {
    const at::Tensor errors = (one.layer.to(at::kCPU, at::kDouble) - one.loops).abs_();
    Comparison comparison = judge_errors(at_their_rows(errors, one, run.sample()), limit, *one.axes, run.sample().item);
    comparison.compared = errors.numel();
    if (in_support) {
      findings.add_support(one.what.empty() ? "float64" : one.what + ", float64", comparison);
    } else {
      findings.add(one.what, comparison);
    }
    outcome.all_well = outcome.all_well && comparison.passed();
    outcome.largest_error = worse_of(outcome.largest_error, comparison.measured);
  }
  return outcome;
}

CheckResult judge_against_loops(CheckContext& context, Judged judged) {
  ReferenceRun& run = context.reference();
  if (!run.why_not().empty()) return not_applicable(run.why_not());
  if (compared_of(run, judged).empty()) return not_applicable("the layer shows no weights");
  Findings findings("largest difference");
  if (const std::string what = what_is_not_finite(context); !what.empty()) {
    findings.fail(what + " holds NaN or infinity: nothing follows for the layer");
    return findings.result();
  }
  const Outcome own = judge(findings, run, judged, false);
  if (ReferenceRun* exact = context.exact_reference()) {
    if (!exact->why_not().empty()) {
      findings.fail(exact->why_not() + " in float64");
    } else {
      const Outcome outcome = judge(findings, *exact, judged, true);
      const std::string error = format_number(outcome.largest_error, 2);
      if (!outcome.all_well) {
        findings.note("the difference stays in float64 (" + error + "): a bug, not rounding");
      } else {
        const bool overflows = !std::isfinite(own.largest_error);
        const char* verdict = own.all_well ? ""
                              : overflows  ? ": it is finite there, so numbers overflow in the run's format"
                                           : ": it vanishes there, so it is rounding";
        findings.note("float64 " + error + verdict);
      }
    }
  } else if (context.x().scalar_type() != at::kDouble) {
    findings.note("the layer cannot be rebuilt in float64");
  }
  findings.sampled(run.sample().words);
  return findings.result();
}

}  // namespace

CheckResult check_reference_forward(CheckContext& context) { return judge_against_loops(context, Judged::kOutput); }

CheckResult check_reference_weights(CheckContext& context) { return judge_against_loops(context, Judged::kWeights); }

CheckResult check_reference_backward(CheckContext& context) {
  const CheckResult result = judge_against_loops(context, Judged::kGradients);
  context.forget_references();
  return result;
}

}  // namespace attn
