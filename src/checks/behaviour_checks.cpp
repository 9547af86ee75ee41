// determinism and dropout: how the layer behaves from one run to the next.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "checks/check_context.h"
#include "checks/reference/number_format.h"
#include "core/text.h"

namespace attn {
namespace {

/// What one kind of dropout did to a tensor.
struct DroppedPair {
  std::string name;  ///< "weights", "output"
  at::Tensor before, after;
  AxisNames axes;
};

/// The dropped share lies within 6 standard deviations of p, and every survivor is its value divided by 1 - p. False:
/// there was nothing to drop.
bool judge_dropped(Findings& findings, const DroppedPair& pair, double p) {
  constexpr double kSigmas = 6.0;
  const at::ScalarType type = pair.after.scalar_type();
  const at::Tensor before = pair.before.to(at::kDouble), after = pair.after.to(at::kDouble);
  const at::Tensor could_drop =
      before.abs().gt(1e3 * underflow_of(type));  // below, 0 may be rounding and ratios are rough
  const double count = could_drop.sum().item<double>();
  if (count == 0.0) {
    findings.note("every one of the " + pair.name + " is 0, so there is nothing to drop");
    return false;
  }
  const double dropped = after.eq(0).logical_and(could_drop).sum().item<double>();
  const double share = dropped / count;

  Comparison comparison;
  comparison.measured = std::abs(share - p);
  // Half a count more: with few numbers the share can only take few values.
  comparison.limit = {
      kSigmas * std::sqrt(p * (1.0 - p) / count) + 0.5 / count,
      "6 standard deviations of the share dropped of " + format_count(static_cast<std::uint64_t>(count))};
  comparison.compared = static_cast<std::int64_t>(count);
  comparison.wrong = within(comparison.measured, comparison.limit) ? 0 : 1;
  findings.add("share of " + pair.name, comparison);
  const std::string sentence = format_number(100.0 * share, 3) + " % of " + pair.name + " dropped";
  if (comparison.wrong == 0) {
    findings.note(sentence);
  } else {
    findings.fail(sentence + ", expected " + format_number(100.0 * p, 3) + " %");
  }

  const at::Tensor survivor = could_drop.logical_and(after.ne(0));
  const at::Tensor factor = at::where(survivor, after / before, 1.0 / (1.0 - p));
  const Comparison scaling =
      compare(factor, at::full_like(factor, 1.0 / (1.0 - p)),
              {2.0 * epsilon_of(type) / (1.0 - p), "two roundings of " + number_name(type)}, pair.axes);
  findings.add("factor of " + pair.name, scaling);
  if (scaling.wrong > 0 && scaling.non_finite == 0) {
    const double median = factor.masked_select(survivor).median().item<double>();
    findings.fail("surviving " + pair.name + " are scaled by " + format_number(median) + ", expected " +
                  format_number(1.0 / (1.0 - p)) + " = 1/(1 - p)");
  }
  return true;
}

void add_bits(Findings& findings, const std::string& what, const at::Tensor& actual, const at::Tensor& expected,
              const std::string& sentence) {
  const Comparison comparison = compare_bits(actual, expected, "nothing is random in eval", kTokenAxes);
  findings.add(what, comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) findings.fail(sentence);
}

/// Runs in training mode, on x repeated until enough numbers are there to speak of a share.
std::optional<CapturedSteps> training_run(CheckContext& context) {
  constexpr std::int64_t kEnoughWeights = 20000;
  const std::int64_t B = context.B();
  const std::int64_t visible_pairs = context.visible().sum().item<std::int64_t>() * (B / context.visible().size(0));
  const std::int64_t weights = std::max<std::int64_t>(1, context.config().H * visible_pairs);
  const std::int64_t outputs = B * context.T() * context.config().d_model;
  const std::int64_t repeats = std::max<std::int64_t>(1, kEnoughWeights / std::min(weights, outputs));
  std::vector<std::int64_t> items;
  for (std::int64_t n = 0; n < repeats * B; ++n) items.push_back(n % B);
  const at::NoGradGuard no_gradients;
  return context.subject().forward_with_steps(chosen_items(context.input(), items));
}

std::optional<DroppedPair> dropped_pair(const CapturedSteps& steps, Step before, Step after, const std::string& name,
                                        const AxisNames& axes) {
  const auto first = steps.values.find(before), second = steps.values.find(after);
  if (first == steps.values.end() || second == steps.values.end()) return std::nullopt;
  if (first->second.sizes() != second->second.sizes()) throw SubjectFailure(name + ": dropout changes the shape");
  return DroppedPair{name, first->second, second->second, axes};
}

/// False: the layer has no number but 0, which dropout leaves as it is.
bool judge_training(CheckContext& context, Findings& findings, const at::Tensor& in_eval) {
  const double p = context.config().dropout;
  context.subject().train(true);
  const at::Tensor in_training = context.subject().forward(context.input());
  bool something_to_drop = in_eval.ne(0).any().item<bool>();
  if (something_to_drop && bits_of(in_training.contiguous()).equal(bits_of(in_eval.contiguous()))) {
    findings.fail("training mode changes no output: dropout never acts");
  }
  const std::optional<CapturedSteps> steps = training_run(context);
  bool judged = false;
  if (steps.has_value()) {
    const auto weights = dropped_pair(*steps, Step::kWeights, Step::kDroppedWeights, "weights", kPairAxes);
    const auto output = dropped_pair(*steps, Step::kProjected, Step::kOutput, "outputs", kTokenAxes);
    for (const auto& pair : {weights, output}) {
      if (!pair.has_value()) continue;
      something_to_drop = judge_dropped(findings, *pair, p) || something_to_drop;
      judged = true;
    }
  }
  if (!judged) findings.note("the layer does not show what is dropped, so only its coming and going was judged");
  return something_to_drop;
}

}  // namespace

CheckResult check_determinism(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  Subject& subject = context.subject();
  Findings findings("largest difference");
  const at::Tensor first = subject.forward(context.input());
  AttentionInput other = with_x(context.input(), context.draw(context.x().sizes().vec(), Draw::kOtherInput));
  if (context.has_memory()) other.memory = context.draw(context.input().memory.sizes().vec(), Draw::kMemory);
  subject.forward(other);  // a layer must not remember it
  add_bits(findings, "second run", subject.forward(context.input()), first, "two runs in eval differ");

  const std::optional<CapturedSteps> watched = subject.forward_with_steps(context.input());
  if (watched.has_value())
    add_bits(findings, "watched run", watched->output, first, "watching the steps changes the result");

  const std::unique_ptr<Subject> rebuilt = subject.rebuild(context.run().dtype);
  if (rebuilt != nullptr) {
    rebuilt->train(false);
    add_bits(findings, "rebuilt", rebuilt->forward(context.input()), first, "the same seed builds another layer");
  }
  findings.note(std::string("two runs") + (watched.has_value() ? ", watched" : "") +
                (rebuilt != nullptr ? ", rebuilt" : ""));
  return findings.result();
}

CheckResult check_dropout(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  Subject& subject = context.subject();
  Findings findings("distance from what is expected");
  const at::Tensor before = subject.forward(context.input());
  const std::unique_ptr<Subject> without = subject.with_dropout(0.0);
  if (without != nullptr) {
    without->train(false);
    add_bits(findings, "eval", before, without->forward(context.input()), "eval is not the layer with dropout 0");
  }
  at::manual_seed(context.run().seed);  // dropout draws from LibTorch's own generator
  const bool something_to_drop = judge_training(context, findings, before);
  subject.train(false);
  add_bits(findings, "eval after training", subject.forward(context.input()), before,
           "eval after training is not eval before it");
  if (!something_to_drop && findings.all_well())
    return not_applicable("all weights and outputs are 0: nothing to drop");
  return findings.result();
}

}  // namespace attn
