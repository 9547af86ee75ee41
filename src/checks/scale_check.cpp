// scale: what the raw dot products are multiplied by, recovered from the scores themselves.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "checks/check_context.h"
#include "checks/pipeline_steps.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_scores.h"
#include "core/text.h"

namespace attn {
namespace {

/// What all pairs together say, in float64.
struct ScoreFacts {
  double products = 0.0;       ///< sum of score * dot
  double squares = 0.0;        ///< sum of dot^2
  double error_squares = 0.0;  ///< sum of (how far rounding may move a score, at scale 1)^2
  bool all_equal = true;       ///< every query has one score for all its keys: softmax cannot tell any scale.
  Comparison scores;           ///< each score against dot * scale.
};

/// How far rounding may move q.k * scale, at scale 1: d_k roundings of the sum of |q||k| (in float32 for the 16-bit
/// formats), and one each when the dot product and the scaled score are stored. What falls below the format's smallest
/// numbers is lost before and after the scale.
at::Tensor rounding_bound(const at::Tensor& q, const at::Tensor& k, const at::Tensor& dots, double scale,
                          at::ScalarType type) {
  const double summing = epsilon_of(type == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor magnitudes = at::matmul(q.abs(), k.abs().transpose(-2, -1));
  return magnitudes * (summing * static_cast<double>(q.size(-1))) + dots.abs() * (2.0 * epsilon_of(type)) +
         underflow_of(type) * (1.0 + 1.0 / scale);
}

/// "1/sqrt(d_model)": the known mistakes that lie within 1 % of this factor. One that the right factor also lies
/// near to explains nothing.
std::string names_of(double factor, const AttentionConfig& config) {
  const double d_k = static_cast<double>(config.d_k());
  const std::vector<std::pair<std::string, double>> known = {
      {"no scale at all", 1.0},
      {"1/d_k, which is 1/sqrt(d_k) applied twice", 1.0 / d_k},
      {"1/sqrt(d_model)", 1.0 / std::sqrt(static_cast<double>(config.d_model))},
      {"1/sqrt(H)", 1.0 / std::sqrt(static_cast<double>(config.H))},
      {"1/sqrt(d_k), though the config gives a scale", 1.0 / std::sqrt(d_k)},
      {"sqrt(d_k)", std::sqrt(d_k)},
      {"1/d_model", 1.0 / static_cast<double>(config.d_model)}};
  constexpr double kNear = 0.01;
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    const bool is_right = std::abs(config.scale() / value - 1.0) <= 2.0 * kNear;
    if (!is_right && std::abs(factor / value - 1.0) <= kNear) names.push_back(name);
  }
  return join(names, " or ");
}

/// "1/sqrt(d_k)", or where that comes from when it is given.
std::string name_of_right(const AttentionConfig& config) {
  return config.given_scale.has_value() ? "the config's scale" : "1/sqrt(d_k)";
}

/// Takes one batch entry: q, k (1, H, T, d_k), scaled (1, H, T, T_k).
void take_entry(ScoreFacts& facts, const at::Tensor& q, const at::Tensor& k, const at::Tensor& scaled, double expected,
                std::int64_t b) {
  const at::Tensor q_exact = q.to(at::kDouble), k_exact = k.to(at::kDouble), scores = scaled.to(at::kDouble);
  const at::Tensor dots = at::matmul(q_exact, k_exact.transpose(-2, -1));
  const at::Tensor bound = rounding_bound(q_exact, k_exact, dots, expected, scaled.scalar_type());
  facts.products += (scores * dots).sum().item<double>();
  facts.squares += dots.square().sum().item<double>();
  facts.error_squares += bound.square().sum().item<double>();
  facts.all_equal = facts.all_equal && dots.amax(-1).eq(dots.amin(-1)).all().item<bool>();

  const at::Tensor strain = (scores - dots * expected).abs() / (bound * expected);  // in units of what is allowed
  const Comparison entry = judge_errors(strain, {1.0, "rounding"}, kPairAxes, b);
  facts.scores.compared += entry.compared;
  facts.scores.wrong += entry.wrong;
  facts.scores.non_finite += entry.non_finite;
  if (facts.scores.where_first.empty()) facts.scores.where_first = entry.where_first;
  const bool worse = !(entry.measured <= facts.scores.measured);
  if (worse) facts.scores.measured = entry.measured;
  if (worse) facts.scores.where_worst = entry.where_worst;
}

void judge_factor(CheckContext& context, Findings& findings, const ScoreFacts& facts) {
  const double expected = context.config().scale();
  const std::string right = name_of_right(context.config());
  const double factor = facts.products / facts.squares;  // least squares of scores = factor * dots
  Comparison comparison = facts.scores;
  comparison.measured = std::abs(factor / expected - 1.0);
  comparison.limit = {std::sqrt(facts.error_squares / facts.squares), "what rounding can do to all scores together"};
  const bool factor_is_right = within(comparison.measured, comparison.limit);
  if (!factor_is_right && comparison.wrong == 0) comparison.wrong = 1;
  findings.add("", comparison);
  if (facts.scores.non_finite > 0) return;
  constexpr int kDigits = 4, kDigitsOfNearMiss = 6;
  const bool near_miss = !factor_is_right && comparison.measured <= 0.01;
  const std::string found = "scores are q.k times " + format_number(factor, near_miss ? kDigitsOfNearMiss : kDigits);
  if (!factor_is_right) {
    const std::string names = names_of(factor, context.config());
    findings.fail(found + (names.empty() ? "" : " = " + names) + ", expected " + format_number(expected) + " = " +
                  right);
  } else if (comparison.wrong > 0) {
    findings.fail("scores are not q.k times one factor, though " + right + " on average");
  } else {
    findings.note(found + " = " + right);
  }
}

/// With q, k ~ N(0, 1) a score scaled by 1/sqrt(d_k) has variance 1. The mean of squares over m x n pairs of the
/// queries and keys of one key head has the variance ((2 + 6/d_k) + (m - 1 + n - 1) 2/d_k) / (m n): pairs that share a
/// query or a key move together.
void judge_variance(CheckContext& context, Findings& findings) {
  constexpr double kSigmas = 6.0;
  constexpr double kWantedDeviation = 0.03;
  const AttentionConfig& config = context.config();
  const double d_k = static_cast<double>(config.d_k());
  const std::int64_t length = std::min<std::int64_t>(64, config.max_seq_len);
  const double n = static_cast<double>(length), m = n * static_cast<double>(config.heads_a_group());
  const double variance_of_one = ((2.0 + 6.0 / d_k) + (m + n - 2.0) * 2.0 / d_k) / (m * n);
  const double heads_wanted = variance_of_one / (kWantedDeviation * kWantedDeviation);
  const auto batch = static_cast<std::int64_t>(std::ceil(heads_wanted / static_cast<double>(config.H_kv())));
  const std::vector<std::int64_t> shape{batch, config.H, length, config.d_k()};
  const std::vector<std::int64_t> key_shape{batch, config.H_kv(), length, config.d_k()};

  const at::NoGradGuard no_gradients;
  const at::Tensor every_key = at::ones({length, length}, context.x().options().dtype(at::kBool));
  const auto steps = context.subject().attend(context.draw(shape, Draw::kQuery), context.draw(key_shape, Draw::kKey),
                                              context.draw(key_shape, Draw::kValue), every_key);
  const at::Tensor* scaled =
      steps.has_value() ? captured_step(*steps, Step::kScaledScores, {batch, config.H, length, length}) : nullptr;
  if (scaled == nullptr) {
    findings.note("q and k cannot be fed directly, so the variance of scores of N(0, 1) was not looked at");
    return;
  }
  const double due = d_k * config.scale() * config.scale();  // 1, unless a scale is given
  const double variance = scaled->to(at::kDouble).square().mean().item<double>();
  const double deviation = std::sqrt(variance_of_one / static_cast<double>(batch * config.H_kv()));
  Comparison comparison;
  comparison.measured = std::abs(variance / due - 1.0);
  comparison.limit = {kSigmas * deviation + 4.0 * epsilon_of(scaled->scalar_type()),
                      "6 standard deviations of the variance of " + std::to_string(scaled->numel()) + " scores"};
  comparison.compared = 1;
  comparison.wrong = within(comparison.measured, comparison.limit) ? 0 : 1;
  findings.add_support("variance", comparison);
  const std::string sentence = "q, k ~ N(0, 1) give scores of variance " + format_number(variance, 3);
  if (comparison.wrong == 0) {
    findings.note(sentence);
  } else {
    findings.fail(sentence + ", expected " + format_number(due, 3));
  }
}

}  // namespace

CheckResult check_scale(CheckContext& context) {
  const AttentionConfig& config = context.config();
  const at::Tensor* q = context.step(query_step(config), context.heads_shape());
  const at::Tensor* k = context.step(key_step(config), context.keys_shape());
  const at::Tensor* scaled = context.step(Step::kScaledScores, context.pairs_shape());
  if (q == nullptr || k == nullptr || scaled == nullptr)
    return not_applicable("the layer shows no q, k and scaled scores");

  ScoreFacts facts;
  for (std::int64_t b = 0; b < context.B(); ++b) {  // one entry at a time: float64 copies of all would be large
    const at::Tensor keys = for_query_heads(k->narrow(0, b, 1), config.H);
    take_entry(facts, q->narrow(0, b, 1), keys, scaled->narrow(0, b, 1), config.scale(), b);
  }
  if (facts.all_equal) return not_applicable("all scores of every query are equal: no scale can be seen");
  constexpr double kBlind = 0.1;  // rounding alone could move the factor by this much
  if (facts.scores.non_finite == 0 && !(std::sqrt(facts.error_squares / facts.squares) <= kBlind)) {
    return not_applicable("the scores are too small for the format: no scale can be seen");
  }
  Findings findings("relative error of the factor, or of the variance");
  judge_factor(context, findings, facts);
  judge_variance(context, findings);
  return findings.result();
}

}  // namespace attn
