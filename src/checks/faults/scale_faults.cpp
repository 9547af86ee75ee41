// Faults of the factor between dot products and scores.
#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "checks/faults/fault.h"
#include "checks/faults/faulty_cores.h"
#include "core/text.h"

namespace attn {
namespace {

using Names = std::vector<std::string>;

double sizes(std::int64_t size) { return static_cast<double>(size); }

/// What a mistaken layer multiplies its scores by.
struct Factor {
  std::string name;  ///< "1/sqrt(H)"
  double (*of)(const AttentionConfig&);
};

/// Whether a mistaken factor is the right one in this config.
Need needs_other_scale(const Factor& factor) {
  return [factor](const RunConfig& run) {
    const double right = run.attention.scale();
    const bool same = std::abs(factor.of(run.attention) / right - 1.0) <= 1e-12;
    return same ? factor.name + " is the right scale here (" + format_number(right) + ")" : "";
  };
}

/// A fault that multiplies scores by a factor of the config.
FaultEntry other_scale(FaultInfo info, const Factor& factor) {
  return {
      std::move(info), {needs_competing_keys, needs_other_scale(factor)}, sized_core_fault([=](const RunConfig& run) {
        return std::make_shared<const OtherScale>(factor.of(run.attention));
      })};
}

/// Scales the queries, and then the scores once more.
struct ScaleTwice : AttentionCore {
  at::Tensor scale_scores(const at::Tensor& scores, double scale) const override {
    return AttentionCore::scale_scores(AttentionCore::scale_scores(scores, scale), scale);
  }
};

/// Announces twice the scaled scores and takes it back in the next step: nothing but `scale` can see it.
struct ScaleAnnouncedTwice : AttentionCore {
  explicit ScaleAnnouncedTwice(Step next_step) : next(next_step) {}
  at::Tensor scale_scores(const at::Tensor& scores, double scale) const override { return scores * (2 * scale); }
  at::Tensor cap_scores(const at::Tensor& scaled, double softcap) const override {
    return AttentionCore::cap_scores(taken_back(Step::kCappedScores, scaled), softcap);
  }
  at::Tensor bias_scores(const at::Tensor& scores, const at::Tensor& bias) const override {
    return AttentionCore::bias_scores(taken_back(Step::kBiasedScores, scores), bias);
  }
  at::Tensor mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const override {
    return AttentionCore::mask_scores(taken_back(Step::kMaskedScores, scores), mask);
  }
  at::Tensor taken_back(Step step, const at::Tensor& scores) const { return step == next ? scores / 2 : scores; }
  Step next;
};

Step step_after_scale(const AttentionConfig& config) {
  if (config.softcap.has_value()) return Step::kCappedScores;
  return config.alibi ? Step::kBiasedScores : Step::kMaskedScores;
}

struct ScoresOfOtherTokens : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q, k).roll({1}, {-1});
  }
};

std::string needs_given_scale(const RunConfig& run) {
  return run.attention.given_scale.has_value() ? "" : "no scale is given";
}

std::string needs_two_keys(const RunConfig& run) {
  return run.memory_length.value_or(run.T) == 1 ? "there is one key: no score is that of another" : "";
}

}  // namespace

std::vector<FaultEntry> scale_faults() {
  const Names seen_in_core{"scale", "sdpa-forward", "reference-weights"};
  const Factor none{"1", [](const AttentionConfig&) { return 1.0; }};
  const Factor d_model{"1/sqrt(d_model)",
                       [](const AttentionConfig& config) { return 1.0 / std::sqrt(sizes(config.d_model)); }};
  const Factor d_k{"1/d_k", [](const AttentionConfig& config) { return 1.0 / sizes(config.d_k()); }};
  const Factor sqrt_d_k{"1/sqrt(d_k)",
                        [](const AttentionConfig& config) { return 1.0 / std::sqrt(sizes(config.d_k())); }};
  const Factor heads{"1/sqrt(H)", [](const AttentionConfig& config) { return 1.0 / std::sqrt(sizes(config.H)); }};
  return {
      other_scale({"scale-none", "scores are not scaled at all", seen_in_core}, none),
      other_scale({"scale-sqrt-d-model", "scores are scaled by 1/sqrt(d_model)", seen_in_core}, d_model),
      other_scale({"scale-d-k", "scores are scaled by 1/d_k, the root is forgotten", seen_in_core}, d_k),
      {{"scale-twice", "the right scale is applied once more", seen_in_core},
       {needs_competing_keys, needs_other_scale(none), needs_slope},
       core_fault<ScaleTwice>()},
      other_scale({"scale-sqrt-heads", "scores are scaled by 1/sqrt(H)", seen_in_core}, heads),
      {{"scale-given-ignored", "scores are scaled by 1/sqrt(d_k), though another scale is given", seen_in_core},
       {needs_given_scale, needs_competing_keys, needs_other_scale(sqrt_d_k)},
       other_scale({}, sqrt_d_k).plant},
      {{"scale-announced-twice", "the scaled scores that are shown are twice those that are used", {"scale"}},
       {needs_two_keys},
       sized_core_fault([](const RunConfig& run) {
         return std::make_shared<const ScaleAnnouncedTwice>(step_after_scale(run.attention));
       })},
      {{"scores-of-other-keys", "every score is that of the key before", seen_in_core},
       {needs_two_keys, needs_competing_keys},
       core_fault<ScoresOfOtherTokens>()},
  };
}

}  // namespace attn
