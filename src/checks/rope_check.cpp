// rope-relative: that q and k are turned as the config says, so that scores depend on how far apart two tokens are and
// on nothing else, and that v is not turned.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "checks/check_context.h"
#include "checks/pipeline_steps.h"
#include "checks/reference/loop_numbers.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "checks/reference/reference_rope.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr double kBudget = 1e10;  ///< multiply-adds; about a second.

/// Beyond position 256, where neighbours are one number in bfloat16, if the layer takes that many tokens.
std::int64_t telling_length(CheckContext& context) {
  constexpr std::int64_t kBeyondBfloat16 = 272;
  const AttentionConfig& config = context.config();
  std::int64_t length = affordable_length(config, context.T(), std::min(config.max_seq_len, kBeyondBfloat16),
                                          context.budget(kBudget), context.x().element_size());
  if (config.mask.has_value()) {
    if (const auto* rows = std::get_if<RowsMask>(&*config.mask)) length = std::min({length, rows->queries, rows->keys});
  }
  return length;
}

/// How far rounding may take one channel, relative to the size of its pair: stored once, turned in float32 at least by
/// a table that is rounded, worked out from an angle that is.
double rounding_of_turn(const AttentionConfig& config, std::int64_t length, at::ScalarType type) {
  const std::vector<double> frequencies = reference_rope_frequencies(*config.rope, config.d_k());
  const double largest_angle = static_cast<double>(length) * *std::max_element(frequencies.begin(), frequencies.end());
  const double table = epsilon_of(type == at::kDouble ? at::kDouble : at::kFloat);
  return epsilon_of(type) + 6.0 * table + 4.0 * epsilon_of(at::kDouble) * largest_angle;
}

/// The judge's own rotation of heads (1, H, T, d_k), in float64.
at::Tensor turned_by_loops(const RopeConfig& rope, const at::Tensor& heads) {
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < heads.size(2); ++t) positions.push_back(t);
  return tensor_of(reference_rope(rope, heads.size(-1), numbers_of(heads), positions), heads.sizes());
}

/// "as style half turns them", when that is what the other style gives; ": they are not turned at all".
std::string turn_diagnosis(const RopeConfig& rope, const at::Tensor& before, const at::Tensor& after, double limit) {
  const at::Tensor found = after.to(at::kCPU, at::kDouble);
  const auto is = [&](const at::Tensor& other) { return (found - other).abs().max().item<double>() <= limit; };
  if (is(before.to(at::kCPU, at::kDouble))) return ": they are not turned at all";
  RopeConfig other = rope;
  other.style = rope.style == RopeStyle::kHalf ? RopeStyle::kAdjacent : RopeStyle::kHalf;
  if (is(turned_by_loops(other, before))) return ": they match style " + to_string(other.style);
  other = rope;
  other.theta = 10000.0;
  if (is(turned_by_loops(other, before))) return ": they match theta 10000, not the config's";
  other = rope;
  other.scaling = {};
  if (is(turned_by_loops(other, before))) return ": they match no scaling";
  return "";
}

void judge_turn(Findings& findings, const AttentionConfig& config, const std::string& name, const at::Tensor& before,
                const at::Tensor& after, const AxisNames& axes) {
  const double largest = reference_rope_factor(*config.rope) * before.abs().max().item<double>();
  const double rounding = rounding_of_turn(config, before.size(2), before.scalar_type());
  constexpr double kPair = 1.4142135623730951;  // a pair is at most so much longer than its longer channel
  const ErrorBudget limit{kPair * largest * rounding, "one rounding of a channel, and six of its pair's rotation"};
  const Comparison comparison = compare(after, turned_by_loops(*config.rope, before), limit, axes);
  findings.add(name, comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail(name + " are not turned by position * frequency from " + comparison.where_first + " on" +
                  turn_diagnosis(*config.rope, before, after, limit.max_abs));
  }
}

/// How far the rows of alike tokens lie apart, where they should be one and the same.
double spread_of(const at::Tensor& heads) { return (heads - heads.narrow(2, 0, 1)).abs().max().item<double>(); }

double largest_norm(const at::Tensor& heads) { return heads.to(at::kDouble).norm(2, -1).max().item<double>(); }

/// Scores of tokens that are all alike: one step down and one to the right is the same distance.
void judge_scores(Findings& findings, const AttentionConfig& config, const at::Tensor& q, const at::Tensor& k,
                  const at::Tensor& scores) {
  const std::int64_t T = scores.size(-1);
  if (T == 1) return;
  const at::ScalarType type = scores.scalar_type();
  const double factor = reference_rope_factor(*config.rope), d_k = static_cast<double>(config.d_k());
  const double q_norm = largest_norm(q), k_norm = largest_norm(k), size = q_norm * k_norm * factor * factor;
  const double summing = epsilon_of(type == at::kDouble ? at::kDouble : at::kFloat);
  const double of_score = size * (2.0 * rounding_of_turn(config, T, type) + d_k * summing + epsilon_of(type));
  const double unlike = std::sqrt(d_k) * factor * factor * (spread_of(q) * k_norm + spread_of(k) * q_norm);
  const ErrorBudget limit{2.0 * of_score + unlike, "rounding of two rotations and two sums of d_k products"};
  for (std::int64_t h = 0; h < scores.size(1); ++h) {  // one at a time: float64 copies of all would be large
    const at::Tensor head = scores.select(1, h);       // (1, T, T)
    const at::Tensor later = head.narrow(1, 1, T - 1).narrow(2, 1, T - 1);
    const Comparison comparison =
        compare(later, head.narrow(1, 0, T - 1).narrow(2, 0, T - 1), limit, {"batch", "query", "key"});
    const std::string label = "scores of alike tokens, head " + std::to_string(h);
    findings.add(label, comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail("with all tokens alike scores must depend on i - j only: " + label + ", one place further on " +
                    comparison.where_worst + " differs by " + format_number(comparison.measured));
      return;
    }
  }
}

/// With all values alike, a context is that value times what the row's weights sum to, wherever it stands.
void judge_values(Findings& findings, const at::Tensor& v, const at::Tensor& context, const at::Tensor& sums) {
  const at::ScalarType type = v.scalar_type();
  const double T = static_cast<double>(v.size(2)), largest = v.abs().max().item<double>();
  const double summing = epsilon_of(type == at::kDouble ? at::kDouble : at::kFloat);
  const ErrorBudget limit{largest * (4.0 * epsilon_of(type) + T * (summing + underflow_of(type))) + 2.0 * spread_of(v),
                          "4 roundings and " + format_number(T) + " summed ones of the largest value"};
  const at::Tensor expected = for_query_heads(v, context.size(1)).to(at::kDouble) * sums.unsqueeze(-1);
  const Comparison comparison = compare(context, expected, limit, kQueryAxes);
  findings.add("context of alike tokens", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("with all tokens alike every context must be that token's value, and " + comparison.where_worst +
                  " differs by " + format_number(comparison.measured) + ": v is not to be turned");
  }
}

}  // namespace

CheckResult check_rope_relative(CheckContext& context) {
  const AttentionConfig& config = context.config();
  const at::NoGradGuard no_gradients;
  const std::int64_t T = telling_length(context);
  const at::Tensor token = context.draw({1, 1, config.d_model}, Draw::kOtherInput);
  const auto steps = context.subject().forward_with_steps({token.expand({1, T, config.d_model}).contiguous()});
  if (!steps.has_value()) return not_applicable("the layer shows no steps");
  const std::vector<std::int64_t> queries{1, config.H, T, config.d_k()}, keys{1, config.H_kv(), T, config.d_k()};
  const std::vector<std::int64_t> pairs{1, config.H, T, T};
  const at::Tensor* q = captured_step(*steps, config.qk_norm ? Step::kQNormed : Step::kQ, queries);
  const at::Tensor* k = captured_step(*steps, config.qk_norm ? Step::kKNormed : Step::kK, keys);
  const at::Tensor* v = captured_step(*steps, Step::kV, keys);
  const at::Tensor* turned_q = captured_step(*steps, Step::kQRotated, queries);
  const at::Tensor* turned_k = captured_step(*steps, Step::kKRotated, keys);
  const at::Tensor* mixed = captured_step(*steps, Step::kContext, queries);
  if (q == nullptr || k == nullptr || turned_q == nullptr || turned_k == nullptr) {
    return not_applicable("the layer does not show q and k before and after they are turned");
  }
  Findings findings("largest difference");
  judge_turn(findings, config, "queries", *q, *turned_q, kQueryAxes);
  judge_turn(findings, config, "keys", *k, *turned_k, kKeyAxes);
  if (const at::Tensor* scores = captured_step(*steps, Step::kScores, pairs)) {
    judge_scores(findings, config, *q, *k, *scores);
  }
  if (v != nullptr && mixed != nullptr) {
    const at::Tensor* weights = captured_step(*steps, Step::kWeights, pairs);
    const at::Tensor sees = declared_mask(config, T, T, {}, mixed->device()).any(-1).to(at::kDouble);  // (1, 1, T)
    judge_values(findings, *v, *mixed, weights != nullptr ? weights->sum(-1, false, at::kDouble) : sees);
  }
  findings.note("one token at the positions 0 to " + std::to_string(T - 1));
  return findings.result();
}

}  // namespace attn
