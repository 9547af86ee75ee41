// sink: what a learned score beside those of the keys takes of each row, on scores whose answer is known.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "checks/check_context.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "core/text.h"

namespace attn {

CheckResult check_sink(CheckContext& context) {
  const AttentionConfig& config = context.config();
  const at::NoGradGuard no_gradients;
  Findings findings("largest difference of what is left for the keys");
  const at::Tensor sinks = context.parameter("sinks");
  if (!sinks.defined() || sinks.sizes() != at::IntArrayRef({config.H})) {
    findings.fail("the layer shows no parameter \"sinks\" of shape (" + std::to_string(config.H) + ")");
    return findings.result();
  }
  // Queries of 0 give every key the score 0, and values of 1 give back what the weights sum to.
  const std::int64_t T = std::min<std::int64_t>(8, config.max_seq_len);
  const at::TensorOptions options = context.x().options();
  const at::Tensor q = at::zeros({1, config.H, T, config.d_k()}, options);
  const at::Tensor k = context.draw({1, config.H_kv(), T, config.d_k()}, Draw::kKey);
  AttentionConfig causal_alone;
  causal_alone.causal = true;
  const at::Tensor mask = declared_mask(causal_alone, T, T, {}, q.device());
  const auto steps = context.subject().attend(q, k, at::ones_like(k), mask);
  const at::Tensor* mixed = steps.has_value() ? captured_step(*steps, Step::kContext, q.sizes().vec()) : nullptr;
  if (mixed == nullptr) return not_applicable("the layer lets no q, k and v in");

  const at::Tensor exact = at::zeros({1, config.H, T, T}, at::kDouble);
  const ScoreRules rules = score_rules(config);
  const at::Tensor scores = rules.slopes.empty() ? exact : exact + distance_bias(rules.slopes, T, T, exact);
  const at::Tensor due =
      visible_softmax(scores, mask.to(at::kCPU), sinks.to(at::kCPU, at::kDouble)).sum(-1, /*keepdim=*/true);
  const at::ScalarType type = mixed->scalar_type();
  const double summing = epsilon_of(type == at::kDouble ? at::kDouble : at::kFloat);
  const double terms = static_cast<double>(T);
  // A bias is rounded to the format before it becomes an exponent.
  const double of_bias = rules.slopes.empty() ? 0.0 : epsilon_of(type) * terms;
  const ErrorBudget limit{2.0 * epsilon_of(type) + (terms + 8.0) * summing + terms * underflow_of(type) + of_bias,
                          "2 roundings of " + number_name(type) + " and " + std::to_string(T + 8) + " summed ones"};
  const Comparison comparison = compare(*mixed, due.expand(mixed->sizes()), limit, kQueryAxes);
  findings.add("", comparison);
  if (comparison.wrong == 0) {
    findings.note("the sinks leave the first token " + format_number(due.min().item<double>(), 3) + " of its value");
  } else if (comparison.non_finite == 0) {
    const bool none = (*mixed - 1.0).abs().max().item<double>() <= limit.max_abs;
    findings.fail(
        none ? "every row gives 1 to its keys: the sink takes no share"
             : "the weights do not sum to 1 less the sink's share, e^sink / (e^sink + sum of e^score), first at " +
                   comparison.where_first);
  }
  return findings.result();
}

}  // namespace attn
