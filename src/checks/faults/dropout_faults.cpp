// Faults of dropout.
#include <ATen/ATen.h>

#include "checks/faults/fault.h"

namespace attn {
namespace {

struct InEval : AttentionCore {
  at::Tensor drop_weights(const at::Tensor& weights, double) const override {
    return at::dropout(weights, 0.2, /*train=*/true);
  }
};

struct SurvivorsNotScaled : AttentionCore {
  at::Tensor drop_weights(const at::Tensor& weights, double dropout) const override {
    return AttentionCore::drop_weights(weights, dropout) * (1 - dropout);
  }
};

struct HalfTheShare : AttentionCore {
  at::Tensor drop_weights(const at::Tensor& weights, double dropout) const override {
    return AttentionCore::drop_weights(weights, dropout / 2);
  }
};

}  // namespace

std::vector<FaultEntry> dropout_faults() {
  return {
      {{"dropout-in-eval", "a fifth of the weights is dropped in eval too", {"row-sums"}},
       {needs_visible_key},
       core_fault<InEval>()},
      {{"dropout-not-scaled", "weights that survive dropout are not scaled by 1/(1 - p)", {"dropout"}},
       {needs_dropout, needs_visible_key},
       core_fault<SurvivorsNotScaled>()},
      {{"dropout-half", "half of the share that is asked for is dropped", {"dropout"}},
       {needs_dropout, needs_visible_key},
       core_fault<HalfTheShare>()},
  };
}

}  // namespace attn
