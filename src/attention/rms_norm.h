// Root mean square norm of each head's queries or keys (Zhang and Sennrich 2019): no mean is taken off, no bias added.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace attn {

class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(std::int64_t width, double eps);

  /// x (..., width) to x / sqrt(mean(x^2) + eps) * weight, worked out in float32 at least, in the dtype of x.
  at::Tensor forward(const at::Tensor& x);

 private:
  double eps_;
  at::Tensor weight_;  ///< parameter `weight` (width), ones at first.
};
TORCH_MODULE(RmsNorm);

}  // namespace attn
