// Listening to attention at work. The pipeline announces every named intermediate; nobody needs to compute it again.
#pragma once

#include <ATen/core/Tensor.h>

#include "attention/steps.h"

namespace attn {

/// Told about every intermediate, in order, by the real computation. Must not change it.
/// Each announced tensor is a distinct one that is not changed afterwards, so hooks on its gradient are sound.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  virtual void on_step(Step step, const at::Tensor& value) = 0;
};

/// Announces to an observer, if there is one, and hands the tensor on: `return announce(observer, Step::kQ, q);`
inline at::Tensor announce(AttentionObserver* observer, Step step, at::Tensor value) {
  if (observer != nullptr) observer->on_step(step, value);
  return value;
}

}  // namespace attn
