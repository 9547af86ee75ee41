// From tokens to heads and back, in the plainest LibTorch calls: what plain_layer.h is made of, for those who do
// something else between the heads.
#pragma once

#include <array>

#include <ATen/core/Tensor.h>

#include "checks/reference/plain_layer.h"

namespace attn {

using PlainHeads = std::array<at::Tensor, 3>;

/// q (B, H, T, d_k), k and v (B, H_kv, T_k, d_k), as they enter the scores: projected, normed, turned.
PlainHeads plain_qkv(const LayerInput& input, const LayerRules& rules);

/// context (B, H, T, d_k) to output (B, T, d_model): merged and projected.
at::Tensor plain_output(const LayerInput& input, const LayerRules& rules, const at::Tensor& context);

}  // namespace attn
