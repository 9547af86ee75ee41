// gradient and causality-gradient: whether the backward pass fits the forward pass, and keeps to the mask.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "checks/check_context.h"
#include "checks/even_input.h"
#include "checks/exact_run.h"
#include "checks/reference/number_format.h"
#include "checks/reference_run.h"
#include "checks/sampling.h"
#include "core/text.h"
#include "experiment/random_input.h"

namespace attn {
namespace {

// ---- gradient ----

constexpr double kDifferenceBudget = 1e10;  ///< multiply-adds; about a second in float64.

/// Something that the output depends on, in float64: the input or a parameter.
struct Target {
  std::string name;
  at::Tensor value;     ///< live: changed in place.
  at::Tensor gradient;  ///< of the loss; undefined: none arrived.
};

/// loss = sum(output * direction) of a float64 subject.
class Slope {
 public:
  Slope(Subject& subject, AttentionInput input, at::Tensor d_output)
      : subject_(subject), input_(std::move(input)), d_output_(std::move(d_output)) {}

  std::vector<Target> targets() {
    const at::AutoGradMode with_gradients(true);
    std::vector<Target> targets{{"x", input_.x.requires_grad_(true), {}}};
    if (input_.memory.defined()) targets.push_back({"memory", input_.memory.requires_grad_(true), {}});
    for (const auto& [name, value] : subject_.named_parameters()) targets.push_back({name, value, {}});
    std::vector<at::Tensor> inputs;
    for (const Target& target : targets) inputs.push_back(target.value);
    const at::Tensor output = subject_.forward(input_);
    size_ = (output.detach() * d_output_).abs().sum().item<double>();
    std::vector<at::Tensor> gradients(inputs.size());
    if (output.requires_grad()) {
      gradients = torch::autograd::grad({output}, inputs, {d_output_}, /*retain_graph=*/false,
                                        /*create_graph=*/false, /*allow_unused=*/true);
    }
    for (std::size_t n = 0; n < targets.size(); ++n) targets[n].gradient = gradients[n];
    return targets;
  }

  /// (loss(target + h u) - loss(target - h u)) / 2h
  double central_difference(const Target& target, const at::Tensor& u, double h) {
    const at::NoGradGuard no_gradients;
    const at::Tensor before = target.value.detach().clone();
    const auto loss_at = [&](double distance) {
      target.value.detach().copy_(before + u * distance);
      const at::Tensor terms = subject_.forward(input_) * d_output_;
      size_ = std::max(size_, terms.abs().sum().item<double>());
      return terms.sum().item<double>();
    };
    const double ahead = loss_at(h), behind = loss_at(-h);
    target.value.detach().copy_(before);
    return (ahead - behind) / (2.0 * h);
  }

  /// The largest sum |output * direction| of all runs: what rounding is measured by.
  double size() const { return size_; }

 private:
  Subject& subject_;
  AttentionInput input_;
  at::Tensor d_output_;
  double size_ = 0.0;
};

/// The slope by two step widths: extrapolated, and how far the cut-off of the series and rounding can have moved it.
struct Measured {
  double slope = 0.0;
  ErrorBudget limit;
};

Measured measured_slope(Slope& slope, const Target& target, const at::Tensor& u, double score) {
  constexpr double kRelativeStep = 1e-4;  // series cut off at h^4, rounding at eps/h: both about 1e-12
  constexpr double kRoundings = 64.0;
  constexpr double kSmallBend = 1e-4;  // of the slope: two widths that agree so well need no finer ones
  constexpr double kFiner = 8.0;
  constexpr int kMostSteps = 5;
  const double level = target.value.detach().square().mean().sqrt().item<double>();
  Measured best;
  // The larger the scores, the sharper softmax bends; a softcap may bend sharper still, so that smaller steps see more.
  double h = kRelativeStep * (level > 0.0 ? level : 1.0) / (1.0 + score);
  for (int attempt = 0; attempt < kMostSteps; ++attempt, h /= kFiner) {
    const double wide = slope.central_difference(target, u, h);
    const double narrow = slope.central_difference(target, u, h / 2.0);
    const double rounding = kRoundings * std::numeric_limits<double>::epsilon() * slope.size() / h;
    const double bend = std::abs(narrow - wide);
    if (attempt > 0 && !(bend + rounding < best.limit.max_abs)) break;
    best = {(4.0 * narrow - wide) / 3.0,
            {bend + rounding, "what two step widths differ by, plus 64 roundings of the loss over h"}};
    if (!(bend > rounding && bend > kSmallBend * std::abs(best.slope))) break;
  }
  return best;
}

void judge_target(Findings& findings, Slope& slope, const Target& target, double score, std::uint64_t seed) {
  if (!target.gradient.defined()) {
    findings.fail("no gradient reaches " + target.name);
    return;
  }
  const at::Tensor u =
      random_normal(target.value.sizes().vec(), seed, RandomStream::kChecks).to(target.value.options());
  const Measured expected = measured_slope(slope, target, u, score);
  const double by_autograd = (target.gradient * u).sum().item<double>();
  Comparison comparison;
  comparison.measured = std::abs(by_autograd - expected.slope);
  comparison.limit = expected.limit;
  comparison.compared = 1;
  comparison.non_finite = std::isfinite(comparison.measured) ? 0 : 1;
  comparison.wrong = within(comparison.measured, comparison.limit) ? 0 : 1;
  if (comparison.wrong > 0) {
    comparison.where_first = comparison.where_worst = target.name;
    findings.fail("slope along " + target.name + " is " + format_number(expected.slope, 12) + ", autograd says " +
                  format_number(by_autograd, 12));
  }
  findings.add("", comparison);
}

/// `count` items, in order: those whose queries see the most keys, of which padding leaves others with little to
/// differ.
std::vector<std::int64_t> fullest_items(CheckContext& context, std::int64_t count) {
  const at::Tensor seen = context.visible().sum({1, 2, 3}).to(at::kCPU).expand({context.B()});
  const at::Tensor chosen = seen.argsort(/*stable=*/true, /*dim=*/-1, /*descending=*/true).narrow(0, 0, count);
  std::vector<std::int64_t> items;
  for (std::int64_t n = 0; n < count; ++n) items.push_back(chosen[n].item<std::int64_t>());
  std::sort(items.begin(), items.end());
  return items;
}

// ---- causality-gradient ----

constexpr double kBackwardBudget = 2e10;  ///< multiply-adds of all backward passes; about two seconds.

/// Which tokens an output row may owe something to, and which it must.
struct RowOwes {
  at::Tensor may;   ///< (B, T) bool: the row may look at the token, or is the token's own.
  at::Tensor must;  ///< (B, T) bool: it may look at it, and gives it a weight that does not underflow.
};

/// Of row t.
RowOwes row_owes(CheckContext& context, const at::Tensor& weights, std::int64_t t) {
  // The gradient passes through two more products; numbers this small may be lost on the way.
  const double noticed = 1e5 * underflow_of(context.x().scalar_type());
  const std::int64_t B = context.B(), T = context.T();
  RowOwes owes;
  owes.may = context.visible().select(-2, t).select(1, 0).to(at::kCPU).expand({B, T}).clone();
  owes.must = weights.select(-2, t).amax(1).gt(noticed).expand({B, T}).logical_and(owes.may);
  owes.may.select(1, t).fill_(true);  // its query
  return owes;
}

/// One output row's gradient at every token, (B, T, d_model). Returns the tokens that it must reach and does not,
/// (B, T) bool.
at::Tensor judge_row(Findings& findings, const at::Tensor& gradient, const RowOwes& owes, std::int64_t t) {
  const std::string label = "gradient of output " + std::to_string(t) + " at";
  const at::Tensor size = gradient.abs().to(at::kCPU, at::kDouble);
  const at::Tensor finite = at::isfinite(size);
  const at::Tensor allowed = owes.may.unsqueeze(-1).logical_and(finite);
  Comparison leak =
      judge_errors(size.masked_fill(allowed, 0.0), {0.0, "a hidden token has no part in it: exactly 0"}, kTokenAxes);
  leak.compared = owes.may.logical_not().sum().item<std::int64_t>() * gradient.size(2);
  findings.add(label, leak);
  if (leak.wrong > 0 && leak.non_finite == 0) {
    const bool of_the_future = size.narrow(1, t + 1, size.size(1) - t - 1).ne(0).any().item<bool>();
    findings.fail((of_the_future ? "not causal: " : "a hidden token counts: ") +
                  std::string("the gradient of output ") + std::to_string(t) + " at " + leak.where_worst + " is " +
                  format_number(leak.measured));
  }
  return size.ne(0).any(-1).logical_not().logical_and(owes.must);
}

void judge_missing(Findings& findings, const at::Tensor& missing, std::int64_t t) {
  const Comparison arrives =
      judge_errors(missing.to(at::kDouble), {0.0, "every token that it sees moves an output"}, {"batch", "token"});
  findings.add("gradient of output " + std::to_string(t) + " at", arrives);
  if (arrives.wrong > 0) {
    findings.fail("no gradient of output " + std::to_string(t) + " reaches " + arrives.where_first);
  }
}

/// x's gradient of each of these rows, each with a random direction, handed to `take`. False: none arrives at all.
bool gradients_of_rows(CheckContext& context, const AttentionInput& input, const std::vector<std::int64_t>& rows,
                       const std::function<void(const at::Tensor& gradient, std::int64_t t)>& take) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor leaf = input.x.detach().requires_grad_(true);
  const at::Tensor output = context.subject().forward(with_x(input, leaf));
  if (!output.requires_grad()) return false;
  const at::Tensor direction = context.draw(leaf.sizes().vec(), Draw::kDirection);
  for (const std::int64_t t : rows) {
    const at::Tensor d_output = at::zeros_like(direction);
    d_output.narrow(1, t, 1).copy_(direction.narrow(1, t, 1));
    at::Tensor gradient;
    run_subject_code(context.run(), [&] {
      gradient = torch::autograd::grad({output}, {leaf}, {d_output}, /*retain_graph=*/true, /*create_graph=*/false,
                                       /*allow_unused=*/true)[0];
    });
    if (!gradient.defined()) return false;
    take(gradient, t);
  }
  return true;
}

}  // namespace

CheckResult check_gradient(CheckContext& context) {
  const std::unique_ptr<Subject> exact = rebuilt_in_float64(context.subject());
  if (exact == nullptr) return not_applicable("the layer cannot be rebuilt in float64");
  // Where that is too much, fewer items, and of one long item its first tokens.
  constexpr double kForwards = 4.0 * 10.0;  // four for each of about ten targets
  std::int64_t count = context.B(), T = context.T();
  const auto too_much = [&] {
    return kForwards * forward_cost(context.config(), count, T) > context.budget(kDifferenceBudget);
  };
  while (count > 1 && too_much()) count = (count + 1) / 2;
  while (T > 1 && too_much()) T = (T + 1) / 2;
  const AttentionInput items = chosen_items(context.input(), fullest_items(context, count));
  AttentionInput input = in_type(tokens_of(items, 0, T), at::kDouble);
  input.x = input.x.clone();
  if (context.has_memory()) input.memory = input.memory.clone();
  const at::Tensor d_output = context.draw({count, T, context.config().d_model}, Draw::kGradient).to(at::kDouble);

  Findings findings("difference of slopes");
  Slope slope(*exact, input, d_output);
  std::vector<Target> targets;
  run_subject_code(context.run(), [&] { targets = slope.targets(); });
  const double score = context.reference().why_not().empty() ? context.reference().plain().size.score : 0.0;
  std::uint64_t seed = context.run().seed + static_cast<std::uint64_t>(Draw::kDirection) * 0x100000001b3;
  for (const Target& target : targets) judge_target(findings, slope, target, score, ++seed);
  const std::size_t inputs = context.has_memory() ? 2 : 1;
  findings.note((inputs == 2 ? "x, the memory and " : "x and ") + std::to_string(targets.size() - inputs) +
                " parameters");
  findings.tried(static_cast<std::size_t>(count), context.B(), "items");
  findings.tried(static_cast<std::size_t>(T), context.T(), "tokens");
  return findings.result();
}

CheckResult check_causality_gradient(CheckContext& context) {
  const std::int64_t T = context.T();
  Findings findings("largest gradient at a later token");
  const double affordable = context.budget(kBackwardBudget) / (2.0 * forward_cost(context.config(), context.B(), T));
  const std::vector<std::int64_t> rows = telling_places(0, T - 1, affordable);

  // Few numbers of a coarse format may cancel to 0 by chance: what did not arrive gets two more chances.
  std::map<std::int64_t, at::Tensor> missing;
  std::vector<std::int64_t> open = rows;
  auto [input, is_even] = even_input(context);
  const at::Tensor weights = even_weights(context);
  for (int attempt = 0; attempt < 3 && !open.empty(); ++attempt, input.x = input.x.roll(1, 1).neg()) {
    const bool arrives = gradients_of_rows(context, input, open, [&](const at::Tensor& gradient, std::int64_t t) {
      const at::Tensor lost = judge_row(findings, gradient, row_owes(context, weights, t), t);
      at::Tensor& so_far = missing[t];
      so_far = so_far.defined() ? so_far.logical_and(lost) : lost;
    });
    if (!arrives) {
      findings.fail("no gradient reaches the input");
      return findings.result();
    }
    std::erase_if(open, [&](std::int64_t t) { return !missing[t].any().item<bool>(); });
  }
  if (is_even) {  // else a weight may rightly be 0
    for (const auto& [t, lost] : missing) judge_missing(findings, lost, t);
  } else {
    findings.note("scores lie apart on every input, so whether visible tokens' gradients arrive is not judged");
  }
  findings.tried(rows.size(), T, "output rows");
  return findings.result();
}

}  // namespace attn
