// row-sums, masked-weights, first-token: what the attention weights must be, seen from the weights themselves.
#include <ATen/ATen.h>

#include <cmath>

#include "checks/check_context.h"
#include "checks/pipeline_steps.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "core/text.h"

namespace attn {
namespace {

/// Errors of sums over T weights that add up to 1: one rounding each, T roundings of the sum that softmax divided by
/// (in float32 for the 16-bit formats), and weights too small for the format.
/// A sink's share p has errors of its own: its exponent's rounding times p (1 - p), which is below 1, a few times.
ErrorBudget row_sum_budget(at::ScalarType type, std::int64_t T, bool has_sink) {
  const double terms = static_cast<double>(T);
  const double summing = epsilon_of(type == at::kDouble ? at::kDouble : at::kFloat);
  const double of_sink = has_sink ? 8.0 * summing : 0.0;
  const double budget = epsilon_of(type) + terms * (summing + underflow_of(type)) + of_sink;
  return {budget, "one rounding of " + number_name(type) + " and " + std::to_string(T) + " summed ones" +
                      (has_sink ? ", 8 more for the sink" : "")};
}

bool sums_to_one(const at::Tensor& weights, std::int64_t axis, double limit) {
  const at::Tensor sums = weights.sum(axis, /*keepdim=*/false, at::kDouble);
  return (sums - 1.0).abs().le(limit).all().item<bool>();
}

/// The scores that softmax takes, before the mask; null when they are not shown.
const at::Tensor* scores_of(CheckContext& context) {
  return context.step(last_scores_step(context.config()), context.pairs_shape());
}

/// The weights of the subject's own scores under the declared mask, in float64, of one batch item, (1, H, T, T_k).
/// Undefined when no scores are shown, or no sinks though the config has some.
at::Tensor weights_due(CheckContext& context, std::int64_t b, bool with_sinks = true) {
  const at::Tensor* scores = scores_of(context);
  if (scores == nullptr) return {};
  at::Tensor sinks;
  if (context.config().sink && with_sinks) {
    sinks = context.parameter("sinks");
    if (!sinks.defined()) return {};
    sinks = sinks.to(at::kDouble);
  }
  return visible_softmax(scores->narrow(0, b, 1).to(at::kDouble), context.visible_to(b), sinks);
}

/// The same of all items, (B, H, T, T_k).
at::Tensor all_weights_due(CheckContext& context, bool with_sinks) {
  std::vector<at::Tensor> items;
  for (std::int64_t b = 0; b < context.B(); ++b) {
    items.push_back(weights_due(context, b, with_sinks));
    if (!items.back().defined()) return {};
  }
  return at::cat(items, 0);
}

/// Says so when each weight is either 0 or its undropped value times one factor above 1: active dropout.
std::string dropout_diagnosis(const at::Tensor& weights, const at::Tensor& undropped, at::ScalarType type) {
  if (!undropped.defined()) return "";
  const at::Tensor expected = undropped.to(at::kDouble), found = weights.to(at::kDouble);
  const at::Tensor survivor = found.gt(0).logical_and(expected.gt(1e-4));
  const at::Tensor dropped = found.eq(0).logical_and(expected.gt(1e-4));
  const at::Tensor factors = found.masked_select(survivor) / expected.masked_select(survivor);
  if (factors.numel() == 0 || !dropped.any().item<bool>()) return "";
  const double factor = factors.median().item<double>();
  const double spread = (factors - factor).abs().max().item<double>();
  constexpr double kLeastFactor = 1.001;  // a dropout of a thousandth; what rounding leaves of 1 is none
  if (!(factor >= kLeastFactor) || !(spread <= 64.0 * epsilon_of(type) * factor)) return "";
  const double share =
      dropped.sum().item<double>() / (dropped.sum().item<double>() + static_cast<double>(factors.numel()));
  return "dropout is active: " + format_number(100.0 * share, 2) +
         " % of the weights are 0 and the others are scaled by " + format_number(factor) + " = 1/(1 - " +
         format_number(1.0 - 1.0 / factor, 3) + ")";
}

/// Says so when the weights of every row are those without a sink, or with one, times one factor.
std::string sink_diagnosis(CheckContext& context, const at::Tensor& weights) {
  const at::Tensor sums = weights.sum(-1, /*keepdim=*/false, at::kDouble);
  const at::Tensor full = context.sees_something().expand(sums.sizes());
  if (context.config().sink) {
    const bool all_ones = (sums - 1.0).abs().masked_select(full).le(1e-2).all().item<bool>();
    return all_ones ? "every row sums to 1: the sink takes no share" : "";
  }
  const at::Tensor due = all_weights_due(context, /*with_sinks=*/false);
  if (!due.defined() || !full.any().item<bool>() || sums.max().item<double>() > 1.0) return "";
  const at::Tensor distance = (weights.to(at::kDouble) - due * sums.unsqueeze(-1)).abs();
  if (!(distance.max().item<double>() <= 16.0 * epsilon_of(weights.scalar_type()))) return "";
  const double share = sums.masked_select(full).min().item<double>();
  return "rows sum to " + format_number(share, 3) +
         " and more, all weights of a row in proportion: a sink that the config does not have?";
}

std::string row_sum_diagnosis(CheckContext& context, const at::Tensor& weights, double limit) {
  if (sums_to_one(weights, 2, limit)) return "columns sum to 1: softmax runs over the query axis";
  if (weights.size(1) > 1 && sums_to_one(weights, 1, limit))
    return "the heads sum to 1: softmax runs over the head axis";
  const std::string dropout =
      dropout_diagnosis(weights, all_weights_due(context, /*with_sinks=*/true), context.x().scalar_type());
  return dropout.empty() ? sink_diagnosis(context, weights) : dropout;
}

/// What each row must sum to, (B, H, T) float64: 1, what the sink leaves, or 0 where no key is visible. Undefined when
/// that cannot be worked out.
at::Tensor sums_due(CheckContext& context) {
  if (!context.config().sink) {
    const std::vector<std::int64_t> rows{context.B(), context.config().H, context.T()};
    return context.sees_something().to(at::kDouble).expand(rows).contiguous();
  }
  const at::Tensor due = all_weights_due(context, /*with_sinks=*/true);
  return due.defined() ? due.sum(-1) : due;
}

void judge_row_sums(CheckContext& context, Findings& findings, const std::string& name, const at::Tensor& weights,
                    const at::Tensor& due) {
  const ErrorBudget budget = row_sum_budget(context.x().scalar_type(), context.T_k(), context.config().sink);
  const at::Tensor sums = weights.sum(-1, /*keepdim=*/false, at::kDouble);  // (B, H, T)
  const Comparison comparison = compare(sums, due, budget, kRowAxes);
  findings.add(name, comparison);
  if (comparison.passed() || comparison.non_finite > 0) return;
  const std::string diagnosis = row_sum_diagnosis(context, weights, budget.max_abs);
  const std::string expected = context.config().sink ? "1 less the sink's share" : "1";
  findings.fail(diagnosis.empty() ? name + " do not sum to " + expected + " in " + std::to_string(comparison.wrong) +
                                        " of " + std::to_string(comparison.compared) + " rows"
                                  : diagnosis);
}

/// Errors of one batch entry: the weight where it must be 0; where a visible weight is 0 without right, what is due.
at::Tensor mask_errors(const at::Tensor& weights, const at::Tensor& due, const at::Tensor& may_look, double underflow) {
  const at::Tensor found = weights.to(at::kDouble);
  const at::Tensor leak = found.abs();
  const at::Tensor owed = due.defined() ? at::where(due.gt(underflow), due, 0.0) : at::ones_like(found);
  const at::Tensor missing = at::where(found.gt(0), 0.0, owed);
  const at::Tensor errors = at::where(may_look, missing, leak);
  return at::where(at::isfinite(found), errors, std::nan(""));
}

std::string mask_diagnosis(const at::Tensor& weights, const at::Tensor& may_look, std::int64_t b) {
  const auto first_place = [&](const at::Tensor& wrong) {
    const std::int64_t flat = wrong.to(at::kByte).argmax().item<std::int64_t>();
    const std::int64_t queries = wrong.size(-2), keys = wrong.size(-1);
    return std::vector<std::int64_t>{flat / (queries * keys), flat / keys % queries, flat % keys};  // head, query, key
  };
  const at::Tensor leaks = weights.ne(0).logical_and(may_look.logical_not());
  if (leaks.any().item<bool>()) {
    const std::vector<std::int64_t> at = first_place(leaks);
    return "query " + std::to_string(at[1]) + " sees key " + std::to_string(at[2]) + ", which its mask hides: weight " +
           format_number(weights[at[0]][at[1]][at[2]].item<double>()) + " in batch " + std::to_string(b) + ", head " +
           std::to_string(at[0]);
  }
  const std::vector<std::int64_t> at = first_place(weights.gt(0).logical_not().logical_and(may_look));
  return "query " + std::to_string(at[1]) + " gives key " + std::to_string(at[2]) + ", which it may see, weight " +
         format_number(weights[at[0]][at[1]][at[2]].item<double>());
}

}  // namespace

CheckResult check_row_sums(CheckContext& context) {
  const at::Tensor* weights = context.step(Step::kWeights, context.pairs_shape());
  if (weights == nullptr) return not_applicable("the layer shows no weights");
  const at::Tensor due = sums_due(context);
  if (!due.defined()) return not_applicable("the layer shows no scores and sinks: a sink's share cannot be worked out");
  Findings findings(context.config().sink ? "largest distance of a row's sum from 1 less the sink's share"
                                          : "largest distance of a row's sum from 1");
  judge_row_sums(context, findings, "weights", *weights, due);
  const at::Tensor* dropped = context.step(Step::kDroppedWeights, context.pairs_shape());
  if (dropped != nullptr && findings.all_well()) judge_row_sums(context, findings, "dropped_weights", *dropped, due);
  const std::int64_t blind = context.sees_something().logical_not().sum().item<std::int64_t>();
  if (blind > 0) findings.note(std::to_string(blind) + " rows see no key: their sum is 0");
  return findings.result();
}

CheckResult check_masked_weights(CheckContext& context) {
  const at::Tensor* weights = context.step(Step::kWeights, context.pairs_shape());
  if (weights == nullptr) return not_applicable("the layer shows no weights");
  const double underflow = underflow_of(weights->scalar_type());
  Findings findings("largest weight that is wrong");
  bool due_is_known = true;
  for (std::int64_t b = 0; b < context.B(); ++b) {      // one entry at a time: float64 copies of all would be large
    const at::Tensor entry = weights->narrow(0, b, 1);  // (1, H, T, T_k)
    const at::Tensor may_look = context.visible_to(b);
    const at::Tensor due = weights_due(context, b);
    due_is_known = due_is_known && due.defined();
    const at::Tensor errors = mask_errors(entry, due, may_look, underflow);
    const Comparison comparison =
        judge_errors(errors, {0.0, "a hidden key has weight 0, a visible one more"}, kPairAxes, b);
    const bool first_fault = findings.all_well();
    findings.add("", comparison);
    if (first_fault && comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail(mask_diagnosis(entry.squeeze(0), may_look.squeeze(0), b));
    }
  }
  if (!due_is_known) {
    findings.note("no scores are shown, so a visible weight that is 0 by underflow counts as wrong");
  }
  return findings.result();
}

CheckResult check_first_token(CheckContext& context) {
  const at::Tensor sees_itself = context.visible().select(-1, 0).select(-1, 0).flatten();  // (B or 1)
  if (!sees_itself.any().item<bool>()) return not_applicable("the first token is padding, or hidden from itself");
  const at::Tensor* output = context.step(Step::kContext, context.heads_shape());
  const at::Tensor* v = context.step(Step::kV, context.keys_shape());
  if (output == nullptr || v == nullptr) return not_applicable("the layer shows no v and context");
  const at::Tensor seen = sees_itself.expand({context.B()}).view({-1, 1, 1, 1});
  const at::Tensor value = for_query_heads(v->narrow(2, 0, 1), context.config().H), found = output->narrow(2, 0, 1);
  Findings findings("largest difference");
  Comparison comparison = compare(found, at::where(seen, value, found),
                                  {0.0, "one weight of exactly 1 times a value rounds nothing"}, kQueryAxes);
  comparison.compared = seen.sum().item<std::int64_t>() * (value.numel() / context.B());
  findings.add("", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0)
    findings.fail("the first token's context is not its own value, v[:, :, 0, :]");
  return findings.result();
}

}  // namespace attn
