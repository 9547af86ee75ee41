#include "checks/even_input.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "checks/pipeline_steps.h"
#include "checks/reference/plain_scores.h"

namespace attn {
namespace {

/// What the subject's scaled scores are, or would be by its own q and k; undefined when it shows neither.
at::Tensor scores_of(CheckContext& context, const CapturedSteps& steps) {
  const AttentionConfig& config = context.config();
  if (const at::Tensor* shown = captured_step(steps, Step::kScaledScores, context.pairs_shape())) return *shown;
  const at::Tensor* q = captured_step(steps, query_step(config), context.heads_shape());
  const at::Tensor* k = captured_step(steps, key_step(config), context.keys_shape());
  if (q == nullptr || k == nullptr) return {};
  return at::matmul(*q, for_query_heads(*k, config.H).transpose(-2, -1)) * config.scale();
}

/// How far the scaled scores of one query lie apart at most, and from the 0 at which even_weights() has them beside a
/// sink; 0 when they are not known.
double spread_of_scores(CheckContext& context, const AttentionInput& input) {
  const at::NoGradGuard no_gradients;
  const std::optional<CapturedSteps> steps = context.subject().forward_with_steps(input);
  if (!steps.has_value()) return 0.0;
  const at::Tensor scores = scores_of(context, *steps);
  if (!scores.defined()) return 0.0;
  at::Tensor largest = scores.amax(-1).to(at::kDouble), smallest = scores.amin(-1).to(at::kDouble);
  if (context.config().sink) {
    largest = largest.clamp_min(0.0);
    smallest = smallest.clamp_max(0.0);
  }
  return (largest - smallest).max().item<double>();
}

}  // namespace

EvenInput even_input(CheckContext& context) {
  constexpr double kFirstSize = 1.0 / 16.0, kEvenSpread = 1.0;
  constexpr int kMostSteps = 30;  // 4^-30: what spreads the scores still is not the input
  AttentionInput input = with_x(context.input(), context.draw(context.x().sizes().vec(), Draw::kEven) * kFirstSize);
  if (context.has_memory()) {
    input.memory = context.draw(context.input().memory.sizes().vec(), Draw::kMemory) * kFirstSize;
  }
  bool is_even = spread_of_scores(context, input) <= kEvenSpread;
  for (int step = 0; step < kMostSteps && !is_even; ++step) {
    input.x = input.x / 4.0;
    if (context.has_memory()) input.memory = input.memory / 4.0;
    is_even = spread_of_scores(context, input) <= kEvenSpread;
  }
  return {input, is_even};
}

at::Tensor even_weights(CheckContext& context) {
  const AttentionConfig& config = context.config();
  const ScoreRules rules = score_rules(config);
  const at::Tensor visible = context.visible().to(at::kCPU);
  at::Tensor scores = at::zeros({1, config.H, context.T(), context.T_k()}, at::kDouble);
  if (!rules.slopes.empty()) scores = scores + distance_bias(rules.slopes, context.T(), context.T_k(), scores);
  at::Tensor sinks;
  if (config.sink) sinks = context.parameter("sinks");
  if (sinks.defined()) sinks = sinks.to(at::kCPU, at::kDouble);
  return visible_softmax(scores.expand({visible.size(0), -1, -1, -1}), visible, sinks);
}

}  // namespace attn
