#include "checks/even_input.h"

#include <ATen/ATen.h>

namespace attn {
namespace {

/// How far the scaled scores of one query lie apart at most; 0 when the layer does not show them.
double spread_of_scores(CheckContext& context, const at::Tensor& x) {
  const at::NoGradGuard no_gradients;
  const std::optional<CapturedSteps> steps = context.subject().forward_with_steps(with_x(context.input(), x));
  if (!steps.has_value()) return 0.0;
  const at::Tensor* scores = captured_step(*steps, Step::kScaledScores, context.pairs_shape());
  if (scores == nullptr) return 0.0;
  return (scores->amax(-1).to(at::kDouble) - scores->amin(-1).to(at::kDouble)).max().item<double>();
}

}  // namespace

at::Tensor even_input(CheckContext& context) {
  constexpr double kFirstSize = 1.0 / 16.0;
  constexpr int kMostSteps = 20;  // 4^-20: what spreads the scores still is not the input
  at::Tensor x = context.draw(context.x().sizes().vec(), Draw::kEven) * kFirstSize;
  for (int step = 0; step < kMostSteps && spread_of_scores(context, x) > 1.0; ++step) x = x / 4.0;
  return x;
}

}  // namespace attn
