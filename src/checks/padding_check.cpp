// padding: an item that is filled up gives what it gives alone, and what it is filled up with counts for nothing.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <variant>

#include "checks/check_context.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr double kMostItems = 8.0;  ///< items beyond that are a sample: they go through the same code.

/// Left padding moves an item's tokens, which a mask that counts from the start of the sequence notices.
bool alone_is_the_same(const RunConfig& run) {
  if (run.padding != PaddingSide::kLeft || !run.attention.mask.has_value()) return true;
  const MaskConfig& mask = *run.attention.mask;
  return std::holds_alternative<DilatedMask>(mask) || std::holds_alternative<BidirectionalMask>(mask);
}

/// The places of an item's real keys: (n) int64.
at::Tensor real_places(const AttentionInput& input, std::int64_t b) { return input.real_keys[b].nonzero().squeeze(-1); }

/// Item b without what it was filled up with.
AttentionInput item_alone(const AttentionInput& input, std::int64_t b) {
  AttentionInput alone = items_of(input, b, 1);
  alone = with_key_source(alone, key_source(alone).index_select(1, real_places(input, b)));
  alone.real_keys = at::Tensor();
  return alone;
}

void judge_alone(CheckContext& context, Findings& findings, const at::Tensor& whole, std::int64_t b) {
  const AttentionInput& input = context.input();
  const at::Tensor alone = context.subject().forward(item_alone(input, b));
  const at::Tensor item = whole.narrow(0, b, 1);
  const at::Tensor expected = context.has_memory() ? item : item.index_select(1, real_places(input, b));
  const ErrorBudget own = context.output_budget();
  const Comparison comparison =
      compare(alone, expected, {2.0 * own.max_abs, "twice the output's rounding: " + own.why}, kTokenAxes);
  const std::string label = "item " + std::to_string(b) + " alone";
  findings.add(label, comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("item " + std::to_string(b) + " of " + std::to_string(alone.size(1)) +
                  " tokens alone is not what it is when it is filled up: " + comparison.where_worst + " differs by " +
                  format_number(comparison.measured));
  }
}

/// Redraws everything that is padding, of all items at once.
void judge_padded_tokens(CheckContext& context, Findings& findings, const at::Tensor& whole) {
  const AttentionInput& input = context.input();
  const at::Tensor& source = key_source(input);
  const at::Tensor is_padding = input.real_keys.logical_not().unsqueeze(-1);  // (B, T_k, 1)
  const at::Tensor changed = at::where(is_padding, context.draw(source.sizes().vec(), Draw::kOtherInput), source);
  const at::Tensor output = context.subject().forward(with_key_source(input, changed));
  // A padded token's own output may be anything.
  const at::Tensor expected = context.has_memory() ? whole : at::where(is_padding, output, whole);
  const Comparison comparison = compare(output, expected, {0.0, "what is padding may not move any number"}, kTokenAxes);
  findings.add("padding redrawn", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("other numbers in the padding move output " + comparison.where_worst + " by " +
                  format_number(comparison.measured));
  }
}

/// Queries that see no key, left padding for one, have context 0.
void judge_blind_rows(CheckContext& context, Findings& findings) {
  const at::Tensor blind = context.sees_something().logical_not();  // (B or 1, 1, T)
  const std::int64_t count = blind.sum().item<std::int64_t>();
  if (count == 0) return;
  const at::Tensor* mixed = context.step(Step::kContext, context.heads_shape());
  if (mixed == nullptr) return;
  const at::Tensor errors = at::where(blind.unsqueeze(-1), mixed->abs(), 0.0);
  const Comparison comparison = judge_errors(errors, {0.0, "a query that sees no key has context 0"}, kQueryAxes);
  findings.add("rows without a key", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("query " + comparison.where_first + " sees no key, and its context is not 0");
  }
  findings.note(std::to_string(count) + " rows see no key: their context is 0");
}

}  // namespace

CheckResult check_padding(CheckContext& context) {
  const AttentionInput& input = context.input();
  const at::NoGradGuard no_gradients;
  const at::Tensor whole = context.subject().forward(input);
  Findings findings("largest difference");
  judge_padded_tokens(context, findings, whole);
  judge_blind_rows(context, findings);
  if (alone_is_the_same(context.run())) {
    const std::vector<std::int64_t> items = telling_places(0, context.B() - 1, kMostItems);
    for (const std::int64_t b : items) judge_alone(context, findings, whole, b);
    findings.tried(items.size(), context.B(), "items alone");
  } else {
    findings.note("no item was run alone: its mask counts from the start of the padded sequence");
  }
  return findings.result();
}

}  // namespace attn
