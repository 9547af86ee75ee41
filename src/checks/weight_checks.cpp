// row-sums, masked-weights, first-token: what the attention weights must be, seen from the weights themselves.
#include <ATen/ATen.h>

#include <cmath>

#include "checks/check_context.h"
#include "checks/number_format.h"
#include "checks/plain_attention.h"
#include "core/text.h"

namespace attn {
namespace {

/// Errors of sums over T weights that add up to 1: one rounding each, T roundings of the sum that softmax divided by
/// (in float32 for the 16-bit formats), and weights too small for the format.
ErrorBudget row_sum_budget(at::ScalarType type, std::int64_t T) {
  const double terms = static_cast<double>(T);
  const double summing = epsilon_of(type == at::kDouble ? at::kDouble : at::kFloat);
  const double budget = epsilon_of(type) + terms * (summing + underflow_of(type));
  return {budget, "one rounding of " + number_name(type) + " and " + std::to_string(T) + " summed ones"};
}

bool sums_to_one(const at::Tensor& weights, std::int64_t axis, double limit) {
  const at::Tensor sums = weights.sum(axis, /*keepdim=*/false, at::kDouble);
  return (sums - 1.0).abs().le(limit).all().item<bool>();
}

/// What the weights would be without any dropout, from the captured q and k; undefined when those are not shown.
at::Tensor undropped_weights(CheckContext& context) {
  const at::Tensor* q = context.step(Step::kQ, context.heads_shape());
  const at::Tensor* k = context.step(Step::kK, context.heads_shape());
  if (q == nullptr || k == nullptr) return {};
  const at::Tensor scores = at::matmul(*q, k->transpose(-2, -1)) / std::sqrt(static_cast<double>(q->size(-1)));
  return visible_softmax(scores, context.config().causal);
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
  if (!(factor > 1.0) || !(spread <= 64.0 * epsilon_of(type) * factor)) return "";
  const double share =
      dropped.sum().item<double>() / (dropped.sum().item<double>() + static_cast<double>(factors.numel()));
  return "dropout is active: " + format_number(100.0 * share, 2) +
         " % of the weights are 0 and the others are scaled by " + format_number(factor) + " = 1/(1 - " +
         format_number(1.0 - 1.0 / factor, 3) + ")";
}

std::string row_sum_diagnosis(CheckContext& context, const at::Tensor& weights, double limit) {
  if (sums_to_one(weights, 2, limit)) return "columns sum to 1: softmax runs over the query axis";
  if (weights.size(1) > 1 && sums_to_one(weights, 1, limit))
    return "the heads sum to 1: softmax runs over the head axis";
  return dropout_diagnosis(weights, undropped_weights(context), context.x().scalar_type());
}

void judge_row_sums(CheckContext& context, Findings& findings, const std::string& name, const at::Tensor& weights) {
  const ErrorBudget budget = row_sum_budget(context.x().scalar_type(), context.T());
  const at::Tensor sums = weights.sum(-1, /*keepdim=*/false, at::kDouble);  // (B, H, T)
  const Comparison comparison = compare(sums, at::ones_like(sums), budget, kRowAxes);
  findings.add(name, comparison);
  if (comparison.passed() || comparison.non_finite > 0) return;
  const std::string diagnosis = row_sum_diagnosis(context, weights, budget.max_abs);
  findings.fail(diagnosis.empty() ? name + " do not sum to 1 in " + std::to_string(comparison.wrong) + " of " +
                                        std::to_string(comparison.compared) + " rows"
                                  : diagnosis);
}

/// Weights of the subject's own scaled scores under the declared mask: what may underflow by right. Undefined when no
/// scaled scores are shown.
at::Tensor weights_due(CheckContext& context, std::int64_t b) {
  const at::Tensor* scaled = context.step(Step::kScaledScores, context.pairs_shape());
  if (scaled == nullptr) return {};
  return visible_softmax(scaled->select(0, b).to(at::kDouble), context.config().causal);
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
    const std::int64_t T = wrong.size(-1);
    return std::vector<std::int64_t>{flat / (T * T), flat / T % T, flat % T};  // head, query, key
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
  Findings findings("largest distance of a row's sum from 1");
  judge_row_sums(context, findings, "weights", *weights);
  const at::Tensor* dropped = context.step(Step::kDroppedWeights, context.pairs_shape());
  if (dropped != nullptr && findings.all_well()) judge_row_sums(context, findings, "dropped_weights", *dropped);
  return findings.result();
}

CheckResult check_masked_weights(CheckContext& context) {
  const at::Tensor* weights = context.step(Step::kWeights, context.pairs_shape());
  if (weights == nullptr) return not_applicable("the layer shows no weights");
  const std::int64_t T = context.T();
  const at::Tensor may_look = declared_mask(context.config().causal, T, T, weights->device());
  const double underflow = underflow_of(weights->scalar_type());
  Findings findings("largest weight that is wrong");
  for (std::int64_t b = 0; b < context.B(); ++b) {   // one entry at a time: float64 copies of all would be large
    const at::Tensor entry = weights->select(0, b);  // (H, T, T)
    const at::Tensor errors = mask_errors(entry, weights_due(context, b), may_look, underflow);
    const Comparison comparison =
        judge_errors(errors.unsqueeze(0), {0.0, "a hidden key has weight 0, a visible one more"}, kPairAxes, b);
    const bool first_fault = findings.all_well();
    findings.add("", comparison);
    if (first_fault && comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail(mask_diagnosis(entry, may_look, b));
    }
  }
  if (context.step(Step::kScaledScores, context.pairs_shape()) == nullptr) {
    findings.note("no scores are shown, so a visible weight that is 0 by underflow counts as wrong");
  }
  return findings.result();
}

CheckResult check_first_token(CheckContext& context) {
  if (!context.config().causal) return not_applicable("the layer is not causal");
  if (context.T() == 1) return not_applicable("T is 1: there is no later token that the first one could see");
  const at::Tensor* output = context.step(Step::kContext, context.heads_shape());
  const at::Tensor* v = context.step(Step::kV, context.heads_shape());
  if (output == nullptr || v == nullptr) return not_applicable("the layer shows no v and context");
  Findings findings("largest difference");
  const Comparison comparison = compare(output->narrow(2, 0, 1), v->narrow(2, 0, 1),
                                        {0.0, "one weight of exactly 1 times a value rounds nothing"}, kQueryAxes);
  findings.add("", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0)
    findings.fail("the first token's context is not its own value, v[:, :, 0, :]");
  return findings.result();
}

}  // namespace attn
