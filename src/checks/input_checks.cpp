// truncation and nan-propagation: what an output owes to the tokens that it may see, and to nothing else.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "checks/check_context.h"
#include "checks/exact_run.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr double kTruncationBudget = 1e10;  ///< multiply-adds of all shorter runs; about a second.

struct Poison {
  const char* name;
  double value;
};

/// Puts the value into one token of x, or of the memory where there is one, of every item. Outputs of queries that may
/// look at it must not be finite; a query that sees no key has nothing to do with it.
void poison_token(CheckContext& context, Findings& findings, const Poison& poison, std::int64_t token) {
  const AttentionInput& input = context.input();
  at::Tensor source = key_source(input).clone();
  source.select(1, token).fill_(poison.value);
  const at::Tensor output = context.subject().forward(with_key_source(input, source));
  const at::Tensor sees = context.visible().select(-1, token).squeeze(1).unsqueeze(-1).expand(output.sizes());
  const at::Tensor finite = at::isfinite(output).logical_and(sees);
  Comparison comparison = judge_errors(finite.to(at::kDouble), {0.0, "what it sees is not finite"}, kTokenAxes);
  comparison.measured = static_cast<double>(comparison.wrong);
  comparison.compared = sees.sum().item<std::int64_t>();
  const std::string label = std::string(poison.name) + " in token " + std::to_string(token);
  if (comparison.wrong > 0) {
    findings.fail(label + " does not reach " + std::to_string(comparison.wrong) + " of " +
                  std::to_string(comparison.compared) + " outputs that may see it");
  }
  findings.add(label, comparison);
}

/// The first token, half of them and all but the last: in float64 a bug stays, where a coarse format, or large scores,
/// would take it for rounding.
void truncate_in_float64(CheckContext& context, Findings& findings) {
  const std::optional<ErrorBudget> limit = exact_limit(context);
  const std::optional<ExactRun> exact = exact_run(context);
  if (!limit.has_value() || !exact.has_value()) return;
  const std::int64_t T = context.T();
  const at::Tensor whole = exact->subject->forward(exact->input);
  for (const std::int64_t t : std::set<std::int64_t>{1, T / 2, T - 1}) {
    const at::Tensor shorter = exact->subject->forward(tokens_of(exact->input, 0, t));
    const Comparison comparison = compare(shorter, whole.narrow(1, 0, t), *limit, kTokenAxes);
    findings.add_support("first " + std::to_string(t) + " tokens, float64", comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail("in float64, output " + comparison.where_worst + " of the first " + std::to_string(t) +
                    " tokens alone is not that of all " + std::to_string(T) + ", by " +
                    format_number(comparison.measured) + ": a bug, not rounding");
      return;
    }
  }
}

}  // namespace

CheckResult check_truncation(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  const at::Tensor whole = context.subject().forward(context.input());
  const ErrorBudget own = context.output_budget();
  const ErrorBudget limit{2.0 * own.max_abs, "twice the output's rounding: " + own.why};
  const double cost = forward_cost(context.config(), context.B(), context.T()) / 2.0;  // half as long, on average
  const std::vector<std::int64_t> lengths =
      telling_places(1, context.T() - 1, context.budget(kTruncationBudget) / cost);
  Findings findings("largest difference");
  for (const std::int64_t t : lengths) {
    const at::Tensor shorter = context.subject().forward(tokens_of(context.input(), 0, t));
    const Comparison comparison = compare(shorter, whole.narrow(1, 0, t), limit, kTokenAxes);
    findings.add("first " + std::to_string(t) + " tokens", comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail("output " + comparison.where_worst + " of the first " + std::to_string(t) +
                    " tokens alone is not that of all " + std::to_string(context.T()));
    }
  }
  truncate_in_float64(context, findings);
  findings.tried(lengths.size(), context.T() - 1, "lengths");
  return findings.result();
}

CheckResult check_nan_propagation(CheckContext& context) {
  if (!context.visible().any().item<bool>()) return not_applicable("no query may look at any key");
  const at::NoGradGuard no_gradients;
  const std::int64_t T_k = context.T_k();
  std::vector<Poison> poisons{{"NaN", std::nan("")}, {"infinity", std::numeric_limits<double>::infinity()}};
  // LibTorch's function takes a row whose visible scores are all -inf, which infinity may give, for one that sees
  // nothing, and returns 0.
  const bool of_library = context.config().engine == Engine::kSdpa;
  if (of_library) poisons.pop_back();
  // The ends and the middle, or the nearest token after them that some query sees.
  std::set<std::int64_t> tokens;
  const at::Tensor seen = context.visible().any(0).any(0).any(0).to(at::kCPU);  // (T_k)
  for (const std::int64_t wanted : {std::int64_t{0}, T_k / 2, T_k - 1}) {
    for (std::int64_t n = 0; n < T_k; ++n) {
      const std::int64_t token = (wanted + n) % T_k;
      if (!seen[token].item<bool>()) continue;
      tokens.insert(token);
      break;
    }
  }
  Findings findings("finite outputs that should not be");
  for (const std::int64_t token : tokens) {
    for (const Poison& poison : poisons) poison_token(context, findings, poison, token);
  }
  if (of_library) findings.note("NaN alone: LibTorch gives 0 where all visible scores are -inf");
  return findings.result();
}

}  // namespace attn
