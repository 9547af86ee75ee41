#include "attention/rms_norm.h"

#include <ATen/ATen.h>

namespace attn {

RmsNormImpl::RmsNormImpl(std::int64_t width, double eps)
    : eps_(eps), weight_(register_parameter("weight", at::ones({width}))) {}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::promote_types(x.scalar_type(), at::kFloat));
  const at::Tensor normed = wide * (wide.square().mean(-1, /*keepdim=*/true) + eps_).rsqrt();
  return normed.to(x.scalar_type()) * weight_;
}

}  // namespace attn
