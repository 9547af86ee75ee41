// batch-independence and permutation: what must not matter to an item, and to an order. Heads: head_checks.cpp.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "checks/check_context.h"
#include "checks/exact_run.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "checks/reference/plain_rounding.h"
#include "checks/sampling.h"
#include "core/text.h"
#include "experiment/random_input.h"

namespace attn {
namespace {

constexpr double kMostItems = 8.0;  ///< items beyond that are a sample: they go through the same code.

/// Twice the rounding budget: both sides are computed in the run's precision.
ErrorBudget both_sides(const ErrorBudget& budget) {
  return {2.0 * budget.max_abs, "twice the output's rounding: " + budget.why};
}

double level_of(const at::Tensor& tensor) {
  const double level = tensor.to(at::kDouble).square().mean().sqrt().item<double>();
  return level > 0.0 ? level : 1.0;
}

/// The tokens, or keys, in another order: the last one first.
at::Tensor turned(std::int64_t T, const at::Device& device) {
  return at::arange(T, at::TensorOptions().dtype(at::kLong).device(device)).roll(1);
}

/// False when q, k, v and a mask cannot be fed in.
bool permute_keys(CheckContext& context, Findings& findings) {
  const std::vector<std::int64_t> shape = context.heads_shape(), key_shape = context.keys_shape();
  const at::Tensor q = context.draw(shape, Draw::kQuery), k = context.draw(key_shape, Draw::kKey),
                   v = context.draw(key_shape, Draw::kValue);
  const at::Tensor& mask = context.visible();
  const at::Tensor order = turned(context.T_k(), q.device());
  const auto base = context.subject().attend(q, k, v, mask);
  const auto permuted =
      context.subject().attend(q, k.index_select(2, order), v.index_select(2, order), mask.index_select(3, order));
  if (!base.has_value() || !permuted.has_value()) return false;
  const at::Tensor* first = captured_step(*base, Step::kContext, shape);
  const at::Tensor* second = captured_step(*permuted, Step::kContext, shape);
  if (first == nullptr || second == nullptr) return false;
  CoreInput core{q, k, v, {}, score_rules(context.config()), mask, {}};
  if (context.config().sink) core.sinks = context.parameter("sinks");
  const at::Tensor exact = judged_core(core).context;  // loops: float64 must have an error as well
  const at::Tensor plain = plain_core(core).context;
  const double score = largest_score(q, k, core.rules, mask);
  const Comparison comparison =
      compare(*second, *first, both_sides(budget_from(exact, plain.to(at::kCPU), context.T_k(), score)), kQueryAxes);
  findings.add("keys", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("keys and values in another order, and the mask's columns with them, change the context");
  }
  return true;
}

/// Of the memory, or of x, whose outputs must then come in that order.
void permute_tokens(CheckContext& context, Findings& findings) {
  const at::Tensor order = turned(context.T_k(), context.x().device());
  const AttentionInput& input = context.input();
  AttentionInput permuted = with_key_source(input, key_source(input).index_select(1, order));
  if (input.real_keys.defined()) permuted.real_keys = input.real_keys.index_select(1, order);
  const at::Tensor base = context.subject().forward(input);
  const at::Tensor expected = context.has_memory() ? base : base.index_select(1, order);
  const Comparison comparison =
      compare(context.subject().forward(permuted), expected, both_sides(context.output_budget()), kTokenAxes);
  findings.add("tokens", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail(context.has_memory() ? "tokens of the memory in another order change the outputs"
                                       : "without a mask, tokens in another order must give the outputs in that order");
  }
}

/// Whether the layer knows no places: no mask but padding, and nothing that counts positions.
bool has_no_places(const AttentionConfig& config) {
  return !config.causal && !config.window.has_value() && !config.mask.has_value() && !config.rope.has_value() &&
         !config.alibi;
}

/// The run's items; a batch of 1 gets a second one, of the same padding.
AttentionInput two_items_at_least(CheckContext& context, const AttentionInput& other) {
  if (context.B() > 1) return context.input();
  AttentionInput both = context.input();
  both.x = at::cat({both.x, other.x}, 0);
  if (both.memory.defined()) both.memory = at::cat({both.memory, other.memory}, 0);
  if (both.real_keys.defined()) both.real_keys = at::cat({both.real_keys, other.real_keys}, 0);
  return both;
}

/// Item b of `other`, twice as large, in the place of the input's own.
AttentionInput with_other_item(const AttentionInput& input, std::int64_t b, const AttentionInput& other) {
  const auto replaced = [&](const at::Tensor& all, const at::Tensor& by) {
    at::Tensor copy = all.clone();
    copy.select(0, b).copy_(by[b % by.size(0)] * 2.0);
    return copy;
  };
  AttentionInput changed = input;
  changed.x = replaced(input.x, other.x);
  if (input.memory.defined()) changed.memory = replaced(input.memory, other.memory);
  return changed;
}

/// What moves no number of a coarse format may be rounded away there.
bool moves_in_float64(CheckContext& context, const AttentionInput& input, const AttentionInput& changed) {
  const std::optional<ExactRun> exact = exact_run(context, context.subject(), input);
  if (!exact.has_value()) return false;
  return !exact->subject->forward(exact->input).equal(exact->subject->forward(in_type(changed, at::kDouble)));
}

}  // namespace

CheckResult check_batch_independence(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  AttentionInput other = context.input();
  other.x = context.draw(other.x.sizes().vec(), Draw::kOtherInput) * level_of(other.x);
  if (context.has_memory()) {
    other.memory = context.draw(other.memory.sizes().vec(), Draw::kMemory) * level_of(other.memory);
  }
  const AttentionInput input = two_items_at_least(context, other);
  const std::int64_t B = input.x.size(0);
  const at::Tensor whole = context.subject().forward(input);
  const std::vector<std::int64_t> items = telling_places(0, B - 1, kMostItems);
  Findings findings("largest difference");
  for (const std::int64_t b : items) {
    const at::Tensor alone = context.subject().forward(items_of(input, b, 1));
    const Comparison comparison =
        compare(alone, whole.narrow(0, b, 1), both_sides(context.output_budget()), kTokenAxes);
    const std::string label = "item " + std::to_string(b) + " alone";
    findings.add(label, comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail(label + " is not what it is in a batch of " + std::to_string(B));
    }
  }
  for (const std::int64_t b : items) {
    const AttentionInput changed = with_other_item(input, b, other);
    const at::Tensor output = context.subject().forward(changed);
    const auto others = [&](const at::Tensor& outputs) {  // the item that was changed may be anything
      at::Tensor rest = outputs.clone();
      rest.select(0, b).zero_();
      return rest;
    };
    Comparison comparison = compare_bits(others(output), others(whole), "no bit of another item may move", kTokenAxes);
    comparison.compared = whole.numel() / B * (B - 1);
    const std::string label = "item " + std::to_string(b) + " changed";
    findings.add_support(label, comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail("changing item " + std::to_string(b) + " moves " + comparison.where_worst);
    }
    const bool sees_something = context.visible_to(b).any().item<bool>();
    if (sees_something && output.select(0, b).equal(whole.select(0, b)) && !moves_in_float64(context, input, changed)) {
      findings.fail("changing item " + std::to_string(b) + " moves nothing at all");
    }
  }
  findings.tried(items.size(), B, "items");
  return findings.result();
}

CheckResult check_permutation(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  Findings findings("largest difference");
  const bool keys = permute_keys(context, findings);
  const bool tokens = has_no_places(context.config());
  if (!keys && !tokens) return not_applicable("the layer's tokens have places, and it lets no q, k, v and mask in");
  if (tokens) permute_tokens(context, findings);
  findings.note(std::string(keys ? "keys with the mask's columns" : "") + (keys && tokens ? ", " : "") +
                (tokens ? (context.has_memory() ? "tokens of the memory" : "tokens") : ""));
  return findings.result();
}

}  // namespace attn
