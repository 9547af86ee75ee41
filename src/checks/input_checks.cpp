// truncation and nan-propagation: what an output owes to the tokens that it may see, and to nothing else.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <set>

#include "checks/check_context.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr double kTruncationBudget = 1e10;  ///< multiply-adds of all shorter runs; about a second.

struct Poison {
  const char* name;
  double value;
};

}  // namespace

CheckResult check_truncation(CheckContext& context) {
  if (!context.config().causal) return not_applicable("the layer is not causal: outputs owe to later tokens");
  if (context.T() == 1) return not_applicable("T is 1: there is no shorter run");
  const at::NoGradGuard no_gradients;
  const at::Tensor whole = context.subject().forward(context.input());
  const ErrorBudget own = context.output_budget();
  const ErrorBudget limit{2.0 * own.max_abs, "twice the output's rounding: " + own.why};
  const double cost = forward_cost(context.config(), context.B(), context.T()) / 2.0;  // half as long, on average
  const std::vector<std::int64_t> lengths =
      telling_places(1, context.T() - 1, context.budget(kTruncationBudget) / cost);
  Findings findings("largest difference");
  for (const std::int64_t t : lengths) {
    const at::Tensor shorter = context.subject().forward(first_tokens(context.input(), t));
    const Comparison comparison = compare(shorter, whole.narrow(1, 0, t), limit, kTokenAxes);
    findings.add("first " + std::to_string(t) + " tokens", comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail("output " + comparison.where_worst + " of the first " + std::to_string(t) +
                    " tokens alone is not that of all " + std::to_string(context.T()));
    }
  }
  findings.tried(lengths.size(), context.T() - 1, "lengths");
  return findings.result();
}

CheckResult check_nan_propagation(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  const std::int64_t T = context.T();
  const double infinity = std::numeric_limits<double>::infinity();
  Findings findings("finite outputs that should not be");
  for (const std::int64_t token : std::set<std::int64_t>{0, T / 2, T - 1}) {
    for (const Poison& poison : {Poison{"NaN", std::nan("")}, Poison{"infinity", infinity}}) {
      at::Tensor x = context.x().clone();
      x.select(1, token).fill_(poison.value);
      const std::int64_t first = context.config().causal ? token : 0;
      const at::Tensor output = context.subject().forward(with_x(context.input(), x));
      at::Tensor finite = at::isfinite(output);
      finite.narrow(1, 0, first).fill_(false);  // these may not see it
      Comparison comparison = judge_errors(finite.to(at::kDouble), {0.0, "what it sees is not finite"}, kTokenAxes);
      comparison.measured = static_cast<double>(comparison.wrong);
      comparison.compared = output.numel() / T * (T - first);
      const std::string label = std::string(poison.name) + " in token " + std::to_string(token);
      if (comparison.wrong > 0) {
        findings.fail(label + " does not reach " + std::to_string(comparison.wrong) + " of " +
                      std::to_string(comparison.compared) + " outputs that may see it");
      }
      findings.add(label, comparison);
    }
  }
  return findings.result();
}

}  // namespace attn
