// From tokens to heads and back, in the plainest LibTorch calls. Private to plain_layer.cpp.
#pragma once

#include <array>

#include <ATen/core/Tensor.h>

#include "checks/reference/plain_layer.h"

namespace attn {

using PlainHeads = std::array<at::Tensor, 3>;

/// x W^T, plus the bias where the layer of this name has one.
at::Tensor plain_linear(const LayerInput& input, const std::string& name, const at::Tensor& x, bool bias);

/// q (B, H, T, d_k), k and v (B, H_kv, T_k, d_k), in the order of the projections.
PlainHeads plain_projections(const LayerInput& input, const LayerRules& rules);

/// x / sqrt(mean(x^2) + eps) in float32 at least, back in its dtype times weight.
at::Tensor plain_norm(const at::Tensor& heads, const at::Tensor& weight, double eps);

/// Turned by the positions 0 ... T-1, in float32 at least, back in its dtype.
at::Tensor plain_turn(const at::Tensor& heads, const RopeConfig& rope);

/// (B, H, T, d_k) to (B, T, H*d_k).
at::Tensor plain_merge(const at::Tensor& context, const LayerRules& rules);

}  // namespace attn
