// gradient and causality-gradient: whether the backward pass fits the forward pass, and keeps to the mask.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "checks/check_context.h"
#include "checks/even_input.h"
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
  Slope(Subject& subject, at::Tensor x, at::Tensor d_output)
      : subject_(subject), x_(std::move(x)), d_output_(std::move(d_output)) {}

  std::vector<Target> targets() {
    const at::AutoGradMode with_gradients(true);
    std::vector<Target> targets{{"x", x_.requires_grad_(true), {}}};
    for (const auto& [name, value] : subject_.named_parameters()) targets.push_back({name, value, {}});
    std::vector<at::Tensor> inputs;
    for (const Target& target : targets) inputs.push_back(target.value);
    const at::Tensor output = subject_.forward(x_);
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
      return (subject_.forward(x_.detach()) * d_output_).sum().item<double>();
    };
    const double ahead = loss_at(h), behind = loss_at(-h);
    target.value.detach().copy_(before);
    return (ahead - behind) / (2.0 * h);
  }

  /// sum |output * direction|: what rounding is measured by.
  double size() const { return size_; }

 private:
  Subject& subject_;
  at::Tensor x_, d_output_;
  double size_ = 0.0;
};

/// The slope by two step widths: extrapolated, and how far the cut-off of the series and rounding can have moved it.
struct Measured {
  double slope = 0.0;
  ErrorBudget limit;
};

Measured measured_slope(Slope& slope, const Target& target, const at::Tensor& u) {
  constexpr double kRelativeStep = 1e-4;  // series cut off at h^4, rounding at eps/h: both about 1e-12
  constexpr double kRoundings = 64.0;
  const double level = target.value.detach().square().mean().sqrt().item<double>();
  const double h = kRelativeStep * (level > 0.0 ? level : 1.0);
  const double wide = slope.central_difference(target, u, h);
  const double narrow = slope.central_difference(target, u, h / 2.0);
  const double rounding = kRoundings * std::numeric_limits<double>::epsilon() * slope.size() / h;
  return {(4.0 * narrow - wide) / 3.0,
          {std::abs(narrow - wide) + rounding, "what two step widths differ by, plus 64 roundings of the loss over h"}};
}

void judge_target(Findings& findings, Slope& slope, const Target& target, std::uint64_t seed) {
  if (!target.gradient.defined()) {
    findings.fail("no gradient reaches " + target.name);
    return;
  }
  const at::Tensor u =
      random_normal(target.value.sizes().vec(), seed, RandomStream::kChecks).to(target.value.options());
  const Measured expected = measured_slope(slope, target, u);
  const double by_autograd = (target.gradient * u).sum().item<double>();
  Comparison comparison;
  comparison.measured = std::abs(by_autograd - expected.slope);
  comparison.limit = expected.limit;
  comparison.compared = 1;
  comparison.non_finite = std::isfinite(comparison.measured) ? 0 : 1;
  comparison.wrong = within(comparison.measured, comparison.limit) ? 0 : 1;
  if (comparison.wrong > 0) {
    comparison.where_first = comparison.where_worst = target.name;
    findings.fail("slope along " + target.name + " is " + format_number(expected.slope, 6) + ", autograd says " +
                  format_number(by_autograd, 6));
  }
  findings.add("", comparison);
}

// ---- causality-gradient ----

constexpr double kBackwardBudget = 2e10;  ///< multiply-adds of all backward passes; about two seconds.

/// One output row's gradient at every token, (B, T, d_model).
void judge_row(Findings& findings, const at::Tensor& gradient, std::int64_t t) {
  const std::int64_t T = gradient.size(1);
  const std::string label = "gradient of output " + std::to_string(t) + " at";
  const at::Tensor up_to_t = gradient.narrow(1, 0, t + 1);
  const at::Tensor missing = up_to_t.ne(0).any(-1).logical_not();  // (B, t + 1)
  Comparison arrives =
      judge_errors(missing.to(at::kDouble), {0.0, "every token up to its own moves an output"}, {"batch", "token"});
  if (!at::isfinite(up_to_t).all().item<bool>()) {
    arrives = judge_errors(at::where(at::isfinite(up_to_t), 0.0, std::nan("")).to(at::kDouble),
                           {0.0, "every number is finite"}, kTokenAxes);
  }
  if (arrives.wrong > 0 && arrives.non_finite == 0) {
    findings.fail("no gradient of output " + std::to_string(t) + " reaches " + arrives.where_first);
  }
  if (t + 1 < T) {
    const at::Tensor later = at::zeros_like(gradient);
    later.narrow(1, t + 1, T - t - 1).copy_(gradient.narrow(1, t + 1, T - t - 1));
    Comparison leak = judge_errors(later.abs(), {0.0, "a later token has no part in it: exactly 0"}, kTokenAxes);
    leak.compared = gradient.numel() / T * (T - t - 1);
    findings.add(label, leak);
    if (leak.wrong > 0 && leak.non_finite == 0) {
      findings.fail("not causal: the gradient of output " + std::to_string(t) + " at " + leak.where_worst + " is " +
                    format_number(leak.measured));
    }
  }
  findings.add(label, arrives);
}

}  // namespace

CheckResult check_gradient(CheckContext& context) {
  const std::unique_ptr<Subject> exact = context.subject().rebuild(Dtype::kFloat64);
  if (exact == nullptr) return not_applicable("the layer cannot be rebuilt in float64");
  exact->train(false);
  // One item, and of a long one its first tokens: a backward pass that is wrong is wrong on these too.
  constexpr double kForwards = 4.0 * 10.0;  // four for each of about ten targets
  std::int64_t T = context.T();
  while (T > 1 && kForwards * forward_cost(context.config(), 1, T) > context.budget(kDifferenceBudget)) T = (T + 1) / 2;
  const at::Tensor x = context.x().narrow(0, 0, 1).narrow(1, 0, T).to(at::kDouble).clone();
  const at::Tensor d_output = context.draw({1, T, context.config().d_model}, Draw::kGradient).to(at::kDouble);

  Findings findings("difference of slopes");
  Slope slope(*exact, x, d_output);
  std::vector<Target> targets;
  run_subject_code(context.run(), [&] { targets = slope.targets(); });
  std::uint64_t seed = context.run().seed + static_cast<std::uint64_t>(Draw::kDirection) * 0x100000001b3;
  for (const Target& target : targets) judge_target(findings, slope, target, ++seed);
  findings.note("x and " + std::to_string(targets.size() - 1) + " parameters");
  findings.tried(static_cast<std::size_t>(T), context.T(), "tokens");
  return findings.result();
}

CheckResult check_causality_gradient(CheckContext& context) {
  if (!context.config().causal) return not_applicable("the layer is not causal");
  const std::int64_t T = context.T();
  if (T == 1) return not_applicable("T is 1: there is no future");
  const at::AutoGradMode with_gradients(true);
  const at::Tensor x = even_input(context).requires_grad_(true);
  const at::Tensor output = context.subject().forward(x);
  Findings findings("largest gradient at a later token");
  if (!output.requires_grad()) {
    findings.fail("no gradient reaches the output");
    return findings.result();
  }
  const double affordable = context.budget(kBackwardBudget) / (2.0 * forward_cost(context.config(), context.B(), T));
  const std::vector<std::int64_t> rows = telling_places(0, T - 1, affordable);
  const at::Tensor direction = context.draw(x.sizes().vec(), Draw::kDirection);
  for (const std::int64_t t : rows) {
    const at::Tensor d_output = at::zeros_like(direction);
    d_output.narrow(1, t, 1).copy_(direction.narrow(1, t, 1));
    at::Tensor gradient;
    run_subject_code(context.run(), [&] {
      gradient = torch::autograd::grad({output}, {x}, {d_output}, /*retain_graph=*/true, /*create_graph=*/false,
                                       /*allow_unused=*/true)[0];
    });
    if (!gradient.defined()) {
      findings.fail("no gradient reaches the input");
      return findings.result();
    }
    judge_row(findings, gradient, t);
  }
  findings.tried(rows.size(), T, "output rows");
  return findings.result();
}

}  // namespace attn
