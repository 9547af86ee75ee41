// sdpa-forward and sdpa-backward: the layer between q, k, v and context against scaled_dot_product_attention.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "checks/check_context.h"
#include "checks/exact_run.h"
#include "checks/reference/error_budget.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "checks/reference/plain_rounding.h"
#include "checks/sdpa_backends.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

/// What one run of the layer put into its core, and what came out, detached.
struct CoreRun {
  CoreInput input;
  CoreOutput output;  ///< the layer's; an undefined gradient did not arrive.
};

enum class CoreState { kShown, kNoCore, kNoGradients };

/// The steps that enter the core: q and k as projected, or normed, or turned.
struct CoreSteps {
  Step q = Step::kQ, k = Step::kK;
};

CoreSteps core_steps(const AttentionConfig& config) {
  if (config.rope.has_value()) return {Step::kQRotated, Step::kKRotated};
  if (config.qk_norm) return {Step::kQNormed, Step::kKNormed};
  return {};
}

std::pair<CoreState, CoreRun> core_run(const CapturedPass* pass, CheckContext& context) {
  if (pass == nullptr) return {CoreState::kNoCore, {}};
  const AttentionConfig& config = context.config();
  const CoreSteps steps = core_steps(config);
  const std::vector<std::int64_t> queries = context.heads_shape(), keys = context.keys_shape();
  const at::Tensor* q = captured_step(pass->steps, steps.q, queries);
  const at::Tensor* k = captured_step(pass->steps, steps.k, keys);
  const at::Tensor* v = captured_step(pass->steps, Step::kV, keys);
  const at::Tensor* output = captured_step(pass->steps, Step::kContext, queries);
  if (q == nullptr || k == nullptr || v == nullptr || output == nullptr) return {CoreState::kNoCore, {}};
  const auto gradient = [&](Step step) {
    const auto found = pass->gradients.find(step);
    return found == pass->gradients.end() ? at::Tensor() : found->second;
  };
  CoreRun run;
  run.input = {*q, *k, *v, gradient(Step::kContext), score_rules(config), {}, {}};
  run.input.by_library = config.engine == Engine::kSdpa;
  if (!context.visible().all().item<bool>()) run.input.mask = context.visible();
  run.output = {*output, gradient(steps.q), gradient(steps.k), gradient(Step::kV)};
  return {run.input.d_context.defined() ? CoreState::kShown : CoreState::kNoGradients, run};
}

/// A tensor of the core and what it is called.
struct Part {
  const char* name;
  at::Tensor CoreOutput::*member;
  const AxisNames& axes;
};

/// What one of the two checks compares.
struct Direction {
  bool backward;
  std::vector<Part> parts;
};

const Direction& forward_direction() {
  static const Direction direction{false, {{"context", &CoreOutput::context, kQueryAxes}}};
  return direction;
}

const Direction& backward_direction() {
  static const Direction direction{
      true,
      {{"dq", &CoreOutput::dq, kQueryAxes}, {"dk", &CoreOutput::dk, kKeyAxes}, {"dv", &CoreOutput::dv, kKeyAxes}}};
  return direction;
}

double largest_of(const CoreOutput& output, const std::vector<Part>& parts) {
  double largest = 0.0;
  for (const Part& part : parts) largest = std::max(largest, (output.*part.member).abs().max().item<double>());
  return largest;
}

double lesson_figure(double largest) { return 1e-6 * std::max(1.0, largest); }

/// What the subject is held to, for all parts together: gradients are measured against the largest of them, since some
/// are 0 by right.
struct ParityLimit {
  ErrorBudget budget;
  std::optional<CoreOutput> judge;  ///< the float64 loops; absent in float64, where rounding is too small to matter.
  double explainable = 0.0;         ///< a backend of LibTorch that is further from the judge than this is at fault.
};

/// The gradient of a key is a sum over the queries of all heads that it serves.
ParityLimit parity_limit(const CoreInput& input, const std::vector<Part>& parts, double largest) {
  const std::int64_t group = input.q.size(1) / input.k.size(1);
  const std::int64_t T = std::max(input.q.size(2) * group, input.k.size(2));
  const double roundings = std::sqrt(static_cast<double>(T));
  const double score = largest_score(input.q, input.k, input.rules, input.mask);
  if (input.q.scalar_type() == at::kDouble) {
    const double limit = 1e-12 * std::max(1.0, largest) * (1.0 + score) * roundings;
    return {{limit, "1e-12 * max(1, largest value) * (1 + largest score) * sqrt(T): float64 rounding"},
            std::nullopt,
            limit};
  }
  ParityLimit limit;
  limit.judge = judged_core(input);
  limit.explainable = 64.0 * epsilon_of(input.q.scalar_type()) * roundings * largest * (1.0 + score);
  const CoreOutput plain = plain_core(input);
  for (const Part& part : parts) {
    const ErrorBudget own = budget_from(*limit.judge.*part.member, (plain.*part.member).to(at::kCPU), T, score);
    if (limit.budget.why.empty() || !(own.max_abs <= limit.budget.max_abs)) limit.budget = own;
  }
  if (input.q.scalar_type() == at::kFloat && !(lesson_figure(largest) <= limit.budget.max_abs)) {
    limit.budget = {lesson_figure(largest), "1e-6 * max(1, largest value), the lesson's figure"};
  }
  return limit;
}

/// The backend's own distance from the float64 loops. Some are less exact than the plain formula (flash's backward pass
/// for large scores): that must not be counted against the subject. Throws where rounding does not explain it.
double error_of_library(const CoreOutput& library, const ParityLimit& limit, const std::vector<Part>& parts,
                        const std::string& name) {
  if (!limit.judge.has_value()) return 0.0;
  double error = 0.0;
  for (const Part& part : parts) {
    const at::Tensor distance = (library.*part.member).to(at::kCPU, at::kDouble) - *limit.judge.*part.member;
    const double own = distance.abs().max().item<double>();
    if (!std::isfinite(own)) return 0.0;  // nothing is allowed for: the comparison itself says what is not finite
    error = std::max(error, own);
  }
  if (error <= limit.explainable) return error;
  throw Error("LibTorch's " + name + " is " + format_number(error, 2) + " from the float64 loops, rounding explains " +
              format_number(limit.explainable, 2) + ": the fault is the backend's");
}

struct ParityOutcome {
  double difference = 0.0;  ///< from LibTorch's backends.
  double library_error = 0.0;
  double largest = 0.0;
  std::vector<std::string> backends;
  bool all_well = true;
};

/// Compares with the float64 loops, and with every backend, contiguous and strided. `in_support`: in float64 beside the
/// run's own precision.
ParityOutcome judge_parity(Findings& findings, const CoreRun& run, const std::vector<Part>& parts, bool in_support) {
  ParityOutcome outcome;
  std::optional<ParityLimit> limit;
  const auto judge = [&](const CoreOutput& expected, const ErrorBudget& budget, const std::string& name) {
    double difference = 0.0;
    for (const Part& part : parts) {
      const Comparison comparison = compare(run.output.*part.member, expected.*part.member, budget, part.axes);
      const std::string what = std::string(part.name) + ", " + name;
      if (in_support) {
        findings.add_support(what + ", float64", comparison);
      } else {
        findings.add(what, comparison);
      }
      outcome.all_well = outcome.all_well && comparison.passed();
      if (!(comparison.measured <= difference)) difference = comparison.measured;
    }
    return difference;
  };
  for (const SdpaBackend& backend : sdpa_backends()) {
    for (const bool with_strides : {false, true}) {
      const std::optional<CoreOutput> library = library_core(run.input, backend, with_strides);
      if (!library.has_value()) continue;
      const std::string name = backend.name + (with_strides ? ", strided" : "");
      if (outcome.backends.empty() || outcome.backends.back() != backend.name)
        outcome.backends.emplace_back(backend.name);
      if (!limit.has_value()) {
        outcome.largest = largest_of(*library, parts);
        limit = parity_limit(run.input, parts, outcome.largest);
        if (limit->judge.has_value()) judge(*limit->judge, limit->budget, "float64 loops");
      }
      ErrorBudget budget = limit->budget;
      const double library_error = error_of_library(*library, *limit, parts, name);
      // Both may be off, to different sides.
      if (library_error > budget.max_abs / 2.0) {
        budget = {budget.max_abs + library_error, budget.why + ", and " + name + "'s own distance of " +
                                                      format_number(library_error, 2) + " from the float64 loops"};
      }
      outcome.library_error = std::max(outcome.library_error, library_error);
      const double difference = judge(*library, budget, name);
      if (!(difference <= outcome.difference)) outcome.difference = difference;
    }
  }
  return outcome;
}

/// Refuses what makes a comparison of gradients worthless. True when it is worth going on.
bool gradients_are_due(Findings& findings, const CoreRun& run) {
  bool due = true;
  for (const Part& part : backward_direction().parts) {
    if ((run.output.*part.member).defined()) continue;
    findings.fail(std::string("no gradient reaches ") + (part.name + 1));
    due = false;
  }
  if (run.input.d_context.ne(0).any().item<bool>()) return due;
  findings.fail("the gradient of context is all zero");
  return false;
}

/// Nothing can be compared with numbers that are not finite: a library may hide a NaN, and every limit becomes one.
bool core_is_finite(Findings& findings, const CoreRun& run) {
  bool finite = true;
  const auto require = [&](const at::Tensor& tensor, const char* name, const AxisNames& axes) {
    if (!tensor.defined() || at::isfinite(tensor).all().item<bool>()) return;
    findings.add(name, compare(tensor, tensor, {0.0, "every number is finite"}, axes));
    finite = false;
  };
  require(run.input.q, "q", kQueryAxes);
  require(run.input.k, "k", kKeyAxes);
  require(run.input.v, "v", kKeyAxes);
  require(run.input.d_context, "the gradient of context", kQueryAxes);
  return finite;
}

/// The same comparison in float64, where a bug stays and rounding does not.
std::string judge_in_float64(CheckContext& context, Findings& findings, const Direction& direction, bool well_so_far) {
  if (context.x().scalar_type() == at::kDouble) return "";
  const std::optional<ExactRun> exact = exact_run(context);
  if (!exact.has_value()) return "the layer cannot be rebuilt in float64";
  const at::Tensor d_output = context.draw(context.x().sizes().vec(), Draw::kGradient).to(at::kDouble);
  const auto pass = capture_pass(*exact->subject, context.run(), exact->input, d_output);
  const auto [state, run] = core_run(pass.has_value() ? &*pass : nullptr, context);
  if (state == CoreState::kNoCore) return "the layer shows no core in float64";
  if (direction.backward && !gradients_are_due(findings, run)) return "";
  CoreRun judged = run;
  if (!direction.backward) judged.input.d_context = at::Tensor();
  if (!core_is_finite(findings, judged)) return "";
  const ParityOutcome outcome = judge_parity(findings, judged, direction.parts, true);
  if (!outcome.all_well)
    return "the difference stays in float64 (" + format_number(outcome.difference, 2) + "): a bug, not rounding";
  return "float64 " + format_number(outcome.difference, 2) +
         (well_so_far ? "" : ": it vanishes there, so it is rounding");
}

CheckResult judge_core(CheckContext& context, const Direction& direction) {
  const auto [state, run] = core_run(context.pass(), context);
  if (state == CoreState::kNoCore) return not_applicable("the layer shows no q, k, v and context");
  Findings findings("largest difference");
  if (direction.backward && state == CoreState::kNoGradients) {
    findings.fail("no gradient reaches context");
    return findings.result();
  }
  if (direction.backward && !gradients_are_due(findings, run)) return findings.result();
  CoreRun judged = run;
  if (!direction.backward) judged.input.d_context = at::Tensor();
  if (!core_is_finite(findings, judged)) return findings.result();
  const ParityOutcome outcome = judge_parity(findings, judged, direction.parts, false);
  if (outcome.backends.empty()) return not_applicable("this LibTorch offers no backend for this input");
  findings.note("difference " + format_number(outcome.difference, 2) +
                ", the lesson's 1e-6 * max(1, largest value) is " + format_number(lesson_figure(outcome.largest), 2));
  if (outcome.library_error > lesson_figure(outcome.largest)) {
    findings.note("LibTorch's own distance from the float64 loops is " + format_number(outcome.library_error, 2));
  }
  const std::string exact = judge_in_float64(context, findings, direction, outcome.all_well);
  if (!exact.empty()) findings.note(exact);
  findings.note(join(outcome.backends) + ", contiguous and strided");
  return findings.result();
}

}  // namespace

CheckResult check_sdpa_forward(CheckContext& context) { return judge_core(context, forward_direction()); }

CheckResult check_sdpa_backward(CheckContext& context) { return judge_core(context, backward_direction()); }

}  // namespace attn
