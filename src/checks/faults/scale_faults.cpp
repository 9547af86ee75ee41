// Faults of the factor between dot products and scores.
#include <ATen/ATen.h>

#include <cmath>

#include "checks/faults/fault.h"
#include "checks/faults/faulty_cores.h"
#include "core/text.h"

namespace attn {
namespace {

using Names = std::vector<std::string>;

double sizes(std::int64_t size) { return static_cast<double>(size); }

/// A fault that multiplies scores by a factor of the config.
Planting other_scale(double (*factor)(const AttentionConfig&)) {
  return sized_core_fault(
      [=](const RunConfig& run) { return std::make_shared<const OtherScale>(factor(run.attention)); });
}

/// Scales the queries, and then the scores once more.
struct ScaleTwice : AttentionCore {
  at::Tensor scale_scores(const at::Tensor& scores, double scale) const override {
    return AttentionCore::scale_scores(AttentionCore::scale_scores(scores, scale), scale);
  }
};

/// Announces twice the scaled scores and takes it back in the next step: nothing but `scale` can see it.
struct ScaleAnnouncedTwice : AttentionCore {
  at::Tensor scale_scores(const at::Tensor& scores, double scale) const override { return scores * (2 * scale); }
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    return AttentionCore::mask_scores(scaled / 2, mask);
  }
};

struct ScoresOfOtherTokens : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q, k).roll({1}, {-1});
  }
};

std::string needs_wide_heads(const RunConfig& run) {
  return run.attention.d_k() == 1 ? "d_k is 1: its root is 1 as well" : "";
}

std::string needs_d_model_beside_d_k(const RunConfig& run) {
  const AttentionConfig& config = run.attention;
  return config.d_k() == config.d_model ? "d_k is d_model (" + std::to_string(config.d_model) + ")" : "";
}

std::string needs_heads_beside_d_k(const RunConfig& run) {
  const AttentionConfig& config = run.attention;
  return config.d_k() == config.H ? "d_k is H (" + std::to_string(config.H) + ")" : "";
}

}  // namespace

std::vector<FaultEntry> scale_faults() {
  const Names seen_in_core{"scale", "sdpa-forward", "reference-weights"};
  return {
      {{"scale-none", "scores are not scaled at all", seen_in_core},
       {needs_two_keys, needs_wide_heads},
       core_fault<OtherScale>(1.0)},
      {{"scale-sqrt-d-model", "scores are scaled by 1/sqrt(d_model)", seen_in_core},
       {needs_two_keys, needs_d_model_beside_d_k},
       other_scale([](const AttentionConfig& config) { return 1.0 / std::sqrt(sizes(config.d_model)); })},
      {{"scale-d-k", "scores are scaled by 1/d_k, the root is forgotten", seen_in_core},
       {needs_two_keys, needs_wide_heads},
       other_scale([](const AttentionConfig& config) { return 1.0 / sizes(config.d_k()); })},
      {{"scale-twice", "the right scale is applied once more", seen_in_core},
       {needs_two_keys, needs_wide_heads},
       core_fault<ScaleTwice>()},
      {{"scale-sqrt-heads", "scores are scaled by 1/sqrt(H)", seen_in_core},
       {needs_two_keys, needs_heads_beside_d_k},
       other_scale([](const AttentionConfig& config) { return 1.0 / std::sqrt(sizes(config.H)); })},
      {{"scale-announced-twice", "the scaled scores that are shown are twice those that are used", {"scale"}},
       {needs_two_keys},
       core_fault<ScaleAnnouncedTwice>()},
      {{"scores-of-other-keys", "every score is that of the key before", seen_in_core},
       {needs_two_keys},
       core_fault<ScoresOfOtherTokens>()},
  };
}

}  // namespace attn
