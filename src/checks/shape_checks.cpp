// shapes and finite: what every step and gradient must look like, whatever its numbers are.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "checks/check_context.h"
#include "checks/pipeline_steps.h"
#include "checks/reference/number_format.h"
#include "checks/reference_run.h"
#include "core/text.h"
#include "experiment/experiment.h"

namespace attn {
namespace {

/// Compares shapes one by one and counts those that differ.
class ShapeJudge {
 public:
  explicit ShapeJudge(const at::Tensor& x) : x_(x) {}

  void judge(const std::string& name, const at::Tensor& tensor, const std::vector<std::int64_t>& shape,
             const std::string& formula) {
    ++count_.compared;
    std::string wrong;
    if (tensor.sizes() != at::IntArrayRef(shape)) {
      wrong = "is " + format_shape(tensor.sizes().vec()) + ", expected " + formula + format_shape(shape);
    } else if (tensor.scalar_type() != x_.scalar_type()) {
      wrong = "is " + number_name(tensor.scalar_type()) + ", expected " + number_name(x_.scalar_type());
    } else if (tensor.device() != x_.device()) {
      wrong = "is on " + tensor.device().str() + ", expected " + x_.device().str();
    }
    if (!wrong.empty()) report(name, wrong);
  }

  void report(const std::string& name, const std::string& wrong) {
    ++count_.wrong;
    count_.measured += 1.0;
    if (count_.where_first.empty()) count_.where_first = count_.where_worst = name;
    findings_.fail(name + " " + wrong);
  }

  CheckResult result(const std::string& note) {
    count_.limit = {0.0, "a shape is right or wrong"};
    findings_.add("", count_);
    findings_.note(note);
    return findings_.result();
  }

 private:
  at::Tensor x_;
  Findings findings_{"wrong tensors"};
  Comparison count_;
};

bool is_all_zero(const at::Tensor& tensor) { return !tensor.ne(0).any().item<bool>(); }

/// `finite` speaks of the weights of visible keys; of hidden ones masked-weights does.
at::Tensor visible_part(Step step, const at::Tensor& value, const at::Tensor& visible) {
  if (step != Step::kWeights && step != Step::kDroppedWeights) return value;
  const bool fits = value.dim() == 4 && value.size(-2) == visible.size(-2) && value.size(-1) == visible.size(-1);
  return fits ? value.masked_fill(visible.logical_not(), 0.0) : value;  // of the shape `shapes` speaks
}

const AxisNames& axes_of(Step step) {
  static const AxisNames no_names;
  switch (step) {
    case Step::kK:
    case Step::kV:
    case Step::kKNormed:
    case Step::kKRotated:
      return kKeyAxes;
    case Step::kQ:
    case Step::kQNormed:
    case Step::kQRotated:
    case Step::kContext:
      return kQueryAxes;
    case Step::kScores:
    case Step::kScaledScores:
    case Step::kCappedScores:
    case Step::kBiasedScores:
    case Step::kMaskedScores:
    case Step::kWeights:
    case Step::kDroppedWeights:
      return kPairAxes;
    default:
      return kTokenAxes;
  }
}

const AxisNames kWeightAxes{"row", "column"};

Comparison count_non_finite(const at::Tensor& tensor, const AxisNames& axes) {
  Comparison comparison;
  comparison.limit = {0.0, "every number is finite"};
  comparison.compared = tensor.numel();
  const at::Tensor finite = at::isfinite(tensor);
  if (finite.all().item<bool>()) return comparison;
  comparison = judge_errors(finite.logical_not().to(at::kByte), comparison.limit, axes);
  comparison.non_finite = comparison.wrong;
  comparison.measured = static_cast<double>(comparison.wrong);
  return comparison;
}

/// Whether this parameter's gradient may rightly be all zero: queries and keys where each row sees one key or all
/// tokens are alike, a key bias always (softmax cancels it), weights that meet only zeros. `mixes`: some query sees a
/// key, so that values reach the output.
bool may_have_zero_gradient(const std::string& name, const CapturedPass& pass, bool mixes) {
  const bool output_side = name.starts_with("o_proj") || name.starts_with("c_proj");
  if (!output_side && !mixes) return true;
  for (const char* of_scores : {"q_proj", "k_proj", "q_norm", "k_norm", "sinks"}) {
    if (name.starts_with(of_scores)) return true;  // sdpa-backward and reference-backward judge them
  }
  if (name.ends_with(".bias")) return false;
  const bool of_memory = name.starts_with("v_proj") && pass.steps.values.contains(Step::kMemory);
  const auto input = pass.steps.values.find(output_side ? Step::kMerged : of_memory ? Step::kMemory : Step::kX);
  return input == pass.steps.values.end() || is_all_zero(input->second);
}

/// Whether the plain formula's gradient is all zero as well: few numbers of a coarse format may cancel to 0.
bool is_zero_by_the_plain_formula(CheckContext& context, const std::string& name) {
  ReferenceRun& reference = context.reference();
  if (!reference.why_not().empty() || !reference.sample().words.empty()) return false;
  const auto found = reference.plain_gradients().find(name);
  return found != reference.plain_gradients().end() && found->second.defined() && is_all_zero(found->second);
}

void judge_gradient(Findings& findings, const std::string& name, const at::Tensor& gradient, bool may_be_zero,
                    const AxisNames& axes) {
  if (!gradient.defined()) {
    findings.fail("no gradient reaches " + name);
    return;
  }
  findings.add("gradient of " + name, count_non_finite(gradient, axes));
  if (!may_be_zero && is_all_zero(gradient)) findings.fail("the gradient of " + name + " is all zero");
}

}  // namespace

CheckResult check_shapes(CheckContext& context) {
  const CapturedPass* pass = context.pass();
  if (pass == nullptr) return not_applicable("the layer shows no steps");
  ShapeJudge judge(context.x());
  const std::vector<ExpectedStep> expected =
      expected_steps(context.config(), context.B(), context.T(), context.T_k(), context.has_memory());

  std::vector<std::string> order, announced_order;
  for (const ExpectedStep& step : expected) order.emplace_back(step_name(step.step));
  for (const auto& [step, value] : pass->steps.announced) announced_order.emplace_back(step_name(step));
  if (order != announced_order) judge.report("steps", "are " + join(announced_order) + ", expected " + join(order));

  std::size_t gradients = 0;
  for (const ExpectedStep& step : expected) {
    const std::string name(step_name(step.step));
    const std::string formula = "(" + join(step.letters) + ") = ";
    for (std::size_t index = 0; index < pass->steps.announced.size(); ++index) {
      if (pass->steps.announced[index].first != step.step) continue;
      judge.judge(name, pass->steps.announced[index].second, step.shape, formula);
      const at::Tensor& gradient = pass->announced_gradients[index].second;
      if (!gradient.defined()) continue;  // `finite` says so
      judge.judge("gradient of " + name, gradient, step.shape, formula);
      ++gradients;
    }
  }
  judge.judge("output", pass->steps.output, context.x().sizes().vec(), "the shape of x, ");
  for (std::size_t index = 0; index < pass->parameters.size(); ++index) {
    const auto& [name, gradient] = pass->parameter_gradients[index];
    if (!gradient.defined()) continue;
    judge.judge("gradient of " + name, gradient, pass->parameters[index].second.sizes().vec(), "the parameter's, ");
    ++gradients;
  }
  return judge.result(std::to_string(expected.size()) + " steps and " + std::to_string(gradients) + " gradients");
}

CheckResult check_finite(CheckContext& context) {
  Findings findings("numbers that are not finite");
  const CapturedPass* pass = context.pass();
  if (pass == nullptr) {
    const at::NoGradGuard no_gradients;
    findings.add("output", count_non_finite(context.subject().forward(context.input()), kTokenAxes));
    findings.note("the layer shows its output only");
    return findings.result();
  }
  for (const auto& [step, value] : pass->steps.values) {
    if (step == Step::kMaskedScores) continue;  // -inf by right where a key is hidden
    findings.add(std::string(step_name(step)),
                 count_non_finite(visible_part(step, value, context.visible()), axes_of(step)));
  }
  findings.add("output", count_non_finite(pass->steps.output, kTokenAxes));

  const auto may_be_zero = [&](const std::string& name, const at::Tensor& gradient) {
    return gradient.defined() && is_all_zero(gradient) && is_zero_by_the_plain_formula(context, name);
  };
  const bool mixes = context.visible().any().item<bool>();
  // With a memory x makes queries only, and what comes back to queries may be 0.
  const bool x_may_be_zero = !mixes || context.has_memory() || may_be_zero("x", pass->x_gradient);
  judge_gradient(findings, "the input", pass->x_gradient, x_may_be_zero, kTokenAxes);
  if (context.has_memory()) {
    judge_gradient(findings, "the memory", pass->memory_gradient,
                   !mixes || may_be_zero("memory", pass->memory_gradient), kTokenAxes);
  }
  for (const auto& [step, value] : pass->steps.announced) {
    if (step == Step::kX || step == Step::kMemory) continue;  // the input itself, judged above
    const auto gradient = pass->gradients.find(step);
    const bool always_due = step == Step::kContext || (mixes && step == Step::kV);
    judge_gradient(findings, std::string(step_name(step)),
                   gradient == pass->gradients.end() ? at::Tensor() : gradient->second, !always_due, axes_of(step));
  }
  for (const auto& [name, gradient] : pass->parameter_gradients) {
    const bool zero_is_right = may_have_zero_gradient(name, *pass, mixes) || may_be_zero(name, gradient);
    judge_gradient(findings, name, gradient, zero_is_right, kWeightAxes);
  }
  return findings.result();
}

}  // namespace attn
