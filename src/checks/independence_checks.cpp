// batch-independence, head-independence, permutation: what must not matter to an item, a head, an order.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "checks/check_context.h"
#include "checks/number_format.h"
#include "checks/plain_attention.h"
#include "checks/sampling.h"
#include "core/text.h"
#include "experiment/random_input.h"

namespace attn {
namespace {

constexpr double kMostItems = 8.0;  ///< items and heads beyond that are a sample: they go through the same code.

/// Twice the rounding budget: both sides are computed in the run's precision.
ErrorBudget both_sides(const ErrorBudget& budget) {
  return {2.0 * budget.max_abs, "twice the output's rounding: " + budget.why};
}

double level_of(const at::Tensor& tensor) {
  const double level = tensor.to(at::kDouble).square().mean().sqrt().item<double>();
  return level > 0.0 ? level : 1.0;
}

/// The part of a parameter that makes one head's q, k or v: rows of the weight, and of the bias.
struct HeadRows {
  std::string layer;  ///< "c_attn"
  std::int64_t first, count;
};

std::vector<HeadRows> rows_of_head(const AttentionConfig& config, std::int64_t h) {
  const std::int64_t d_k = config.d_k(), all = config.heads_width();
  switch (config.qkv) {
    case QkvLayout::kFused:
      return {{"c_attn", h * d_k, d_k}, {"c_attn", all + h * d_k, d_k}, {"c_attn", 2 * all + h * d_k, d_k}};
    case QkvLayout::kFusedPerHead:
      return {{"qkv_proj", h * 3 * d_k, 3 * d_k}};
    case QkvLayout::kSeparate:
      return {{"q_proj", h * d_k, d_k}, {"k_proj", h * d_k, d_k}, {"v_proj", h * d_k, d_k}};
  }
  return {};
}

/// Judges contexts (B, H, T, d_k) before and after one head was changed.
void judge_heads(Findings& findings, const at::Tensor& base, const at::Tensor& changed, std::int64_t head,
                 const std::string& what) {
  const std::int64_t H = base.size(1);
  at::Tensor expected = changed.clone();  // the head that was changed may be anything that is finite
  for (std::int64_t other = 0; other < H; ++other) {
    if (other != head) expected.select(1, other).copy_(base.select(1, other));
  }
  Comparison comparison = compare_bits(changed, expected, "no bit of another head may move", kQueryAxes);
  comparison.compared = base.numel() / H * (H - 1);
  findings.add(what, comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail(what + " of head " + std::to_string(head) + " move " + comparison.where_worst);
  }
  if (base.select(1, head).equal(changed.select(1, head))) {
    findings.fail(what + " of head " + std::to_string(head) + " move nothing, not even head " + std::to_string(head));
  }
}

/// False when q, k, v cannot be fed in.
bool change_heads_of_core(CheckContext& context, Findings& findings, const std::vector<std::int64_t>& heads) {
  const std::vector<std::int64_t> shape = context.heads_shape();
  const std::vector<at::Tensor> before{context.draw(shape, Draw::kQuery), context.draw(shape, Draw::kKey),
                                       context.draw(shape, Draw::kValue)};
  const std::vector<at::Tensor> other{before[1], before[2], before[0]};
  const auto base = context.subject().attend(before[0], before[1], before[2]);
  if (!base.has_value()) return false;
  const at::Tensor* base_context = captured_step(*base, Step::kContext, shape);
  if (base_context == nullptr) return false;
  for (const std::int64_t head : heads) {
    std::vector<at::Tensor> after;
    for (std::size_t n = 0; n < before.size(); ++n) {
      after.push_back(before[n].clone());
      after.back().select(1, head).copy_(other[n].select(1, head));
    }
    const auto steps = context.subject().attend(after[0], after[1], after[2]);
    judge_heads(findings, *base_context, *captured_step(steps.value(), Step::kContext, shape), head, "q, k and v");
  }
  return true;
}

/// False when the layer does not show its context, or not the parameters that the config's layout has.
bool change_heads_of_projections(CheckContext& context, Findings& findings, const std::vector<std::int64_t>& heads) {
  const std::unique_ptr<Subject> copy = context.subject().rebuild(context.run().dtype);
  if (copy == nullptr) return false;
  copy->train(false);
  std::map<std::string, at::Tensor> parameters;
  for (const auto& [name, value] : copy->named_parameters()) parameters[name] = value.detach();
  const at::Tensor x = context.draw(context.x().sizes().vec(), Draw::kOtherInput);  // the run's own may be all zero
  const auto contexts = [&]() -> std::optional<at::Tensor> {
    const auto steps = copy->forward_with_steps(with_x(context.input(), x));
    if (!steps.has_value()) return std::nullopt;
    const at::Tensor* found = captured_step(*steps, Step::kContext, context.heads_shape());
    return found == nullptr ? std::nullopt : std::optional<at::Tensor>(*found);
  };
  const std::optional<at::Tensor> base = contexts();
  if (!base.has_value()) return false;
  for (const std::int64_t head : heads) {
    std::vector<std::pair<at::Tensor, at::Tensor>> changed;  // the rows, and what they were
    for (const HeadRows& rows : rows_of_head(context.config(), head)) {
      const auto weight = parameters.find(rows.layer + ".weight");
      if (weight == parameters.end() || weight->second.size(0) < rows.first + rows.count) return false;
      const at::Tensor part = weight->second.narrow(0, rows.first, rows.count);
      changed.emplace_back(part, part.clone());
      part.add_(context.draw(part.sizes().vec(), Draw::kDirection) * level_of(weight->second));
    }
    const std::optional<at::Tensor> after = contexts();
    for (const auto& [part, was] : changed) part.copy_(was);
    judge_heads(findings, *base, after.value(), head, "projections");
  }
  return true;
}

/// The tokens, or keys, in another order: the last one first.
at::Tensor turned(std::int64_t T, const at::Device& device) {
  return at::arange(T, at::TensorOptions().dtype(at::kLong).device(device)).roll(1);
}

/// False when q, k, v and a mask cannot be fed in.
bool permute_keys(CheckContext& context, Findings& findings) {
  const std::vector<std::int64_t> shape = context.heads_shape();
  const std::int64_t T = context.T();
  const at::Tensor q = context.draw(shape, Draw::kQuery), k = context.draw(shape, Draw::kKey),
                   v = context.draw(shape, Draw::kValue);
  const at::Tensor mask = declared_mask(context.config().causal, T, T, q.device());
  const at::Tensor order = turned(T, q.device());
  const auto base = context.subject().attend(q, k, v, mask);
  const auto permuted =
      context.subject().attend(q, k.index_select(2, order), v.index_select(2, order), mask.index_select(1, order));
  if (!base.has_value() || !permuted.has_value()) return false;
  const at::Tensor* first = captured_step(*base, Step::kContext, shape);
  const at::Tensor* second = captured_step(*permuted, Step::kContext, shape);
  if (first == nullptr || second == nullptr) return false;
  const CoreInput core{q, k, v, {}, score_rules(context.config()), mask, {}};
  const at::Tensor exact = judged_core(core).context;  // loops: float64 must have an error as well
  const at::Tensor plain = plain_core(core).context;
  const Comparison comparison = compare(*second, *first, both_sides(budget_from(exact, plain, T)), kQueryAxes);
  findings.add("keys", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("keys and values in another order, and the mask's columns with them, change the context");
  }
  return true;
}

void permute_tokens(CheckContext& context, Findings& findings) {
  const at::Tensor order = turned(context.T(), context.x().device());
  const at::Tensor base = context.subject().forward(context.input());
  const at::Tensor permuted = context.subject().forward(with_x(context.input(), context.x().index_select(1, order)));
  const Comparison comparison =
      compare(permuted, base.index_select(1, order), both_sides(context.output_budget()), kTokenAxes);
  findings.add("tokens", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("without a mask, tokens in another order must give the outputs in that order");
  }
}

}  // namespace

CheckResult check_batch_independence(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  const at::Tensor other = context.draw(context.x().sizes().vec(), Draw::kOtherInput) * level_of(context.x());
  // The items of the run; a batch of 1 gets a second one.
  const at::Tensor x = context.B() > 1 ? context.x() : at::cat({context.x(), other}, 0);
  const std::int64_t B = x.size(0);
  const at::Tensor whole = context.subject().forward({x});
  const std::vector<std::int64_t> items = telling_places(0, B - 1, kMostItems);
  Findings findings("largest difference");
  for (const std::int64_t b : items) {
    const at::Tensor alone = context.subject().forward({x.narrow(0, b, 1)});
    const Comparison comparison =
        compare(alone, whole.narrow(0, b, 1), both_sides(context.output_budget()), kTokenAxes);
    const std::string label = "item " + std::to_string(b) + " alone";
    findings.add(label, comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail(label + " is not what it is in a batch of " + std::to_string(B));
    }
  }
  for (const std::int64_t b : items) {
    at::Tensor changed = x.clone();
    changed.select(0, b).copy_(other[b % other.size(0)] * 2.0);
    const at::Tensor output = context.subject().forward({changed});
    at::Tensor expected = whole.clone();
    expected.select(0, b).copy_(output.select(0, b));
    Comparison comparison = compare_bits(output, expected, "no bit of another item may move", kTokenAxes);
    comparison.compared = whole.numel() / B * (B - 1);
    const std::string label = "item " + std::to_string(b) + " changed";
    findings.add_support(label, comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail("changing item " + std::to_string(b) + " moves " + comparison.where_worst);
    }
    if (output.select(0, b).equal(whole.select(0, b))) findings.fail("changing an item moves nothing at all");
  }
  findings.tried(items.size(), B, "items");
  return findings.result();
}

CheckResult check_head_independence(CheckContext& context) {
  const std::int64_t H = context.config().H;
  if (H == 1) return not_applicable("H is 1: there is no other head");
  const at::NoGradGuard no_gradients;
  const std::vector<std::int64_t> heads = telling_places(0, H - 1, kMostItems);
  Findings findings("largest change of another head");
  const bool core = change_heads_of_core(context, findings, heads);
  const bool projections = change_heads_of_projections(context, findings, heads);
  if (!core && !projections) return not_applicable("the layer shows neither its context nor lets q, k, v in");
  findings.tried(heads.size(), H, "heads");
  if (core) findings.note("q, k and v");
  if (projections) findings.note("projections");
  return findings.result();
}

CheckResult check_permutation(CheckContext& context) {
  if (context.T() == 1) return not_applicable("T is 1: there is only one order");
  const at::NoGradGuard no_gradients;
  Findings findings("largest difference");
  const bool keys = permute_keys(context, findings);
  const bool tokens = !context.config().causal;
  if (!keys && !tokens) return not_applicable("the layer is causal and lets no q, k, v and mask in");
  if (tokens) permute_tokens(context, findings);
  findings.note(std::string(keys ? "keys with the mask's columns" : "") + (keys && tokens ? ", " : "") +
                (tokens ? "tokens" : ""));
  return findings.result();
}

}  // namespace attn
