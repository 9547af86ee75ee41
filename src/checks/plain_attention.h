// Attention between q, k, v and context in the plainest LibTorch calls, written here and not in `attention/`, so that a
// fault there cannot widen its own limit; and the float64 loops of reference_attention.h on tensors.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "config/attention_config.h"

namespace attn {

/// What goes into the core. Tensors of one dtype and device, detached.
struct CoreInput {
  at::Tensor q, k, v;    ///< (B, H, T, d_k)
  at::Tensor d_context;  ///< (B, H, T, d_k), the gradient of the context; undefined: no backward pass is wanted.
  bool causal = true;
};

struct CoreOutput {
  at::Tensor context;     ///< (B, H, T, d_k)
  at::Tensor dq, dk, dv;  ///< (B, H, T, d_k); undefined without d_context.
};

/// matmul, masked fill, softmax, matmul, and autograd, in the dtype of the input.
CoreOutput plain_core(const CoreInput& input);

/// The float64 loops, on the CPU in float64. Above kReferenceMultiplyAdds only as many (batch, head) pairs as fit,
/// evenly spread, go through the loops; plain_core in float64, first found equal to the loops on those, gives the
/// others.
CoreOutput judged_core(const CoreInput& input);

/// About five seconds of one processor core.
inline constexpr double kReferenceMultiplyAdds = 4e9;

/// softmax over the keys that the declared mask shows, of scores (..., T, T); hidden keys get 0.
at::Tensor visible_softmax(const at::Tensor& scores, bool causal);

/// The declared mask by the judge's own reading (checks/may_look.h): (1, 1, T_q, T_k) bool, true = may look; with
/// `real_keys` (B, T_k) bool, true = a token: (B, 1, T_q, T_k). An undefined `real_keys` hides nothing.
at::Tensor declared_mask(const AttentionConfig& config, std::int64_t query_len, std::int64_t key_len,
                         const at::Tensor& real_keys, const at::Device& device);

/// The declared mask, (T_q, T_k) bool, true = may look: key j <= query i + (T_k - T_q). All true when not causal.
at::Tensor declared_mask(bool causal, std::int64_t query_len, std::int64_t key_len, const at::Device& device);

}  // namespace attn
