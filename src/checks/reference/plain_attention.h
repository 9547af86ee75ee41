// Attention between q, k, v and context in the plainest LibTorch calls, written here and not in `attention/`, so that a
// fault there cannot widen its own limit; the float64 loops of reference_head.h on tensors; and the declared mask.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "checks/reference/plain_scores.h"
#include "config/attention_config.h"

namespace attn {

/// What goes into the core. Tensors of one dtype and device, detached.
struct CoreInput {
  at::Tensor q;          ///< (B, H, T_q, d_k), normed and turned where the layer does that.
  at::Tensor k, v;       ///< (B, H_kv, T_k, d_k)
  at::Tensor d_context;  ///< (B, H, T_q, d_k), the gradient of the context; undefined: no backward pass is wanted.
  ScoreRules rules;
  at::Tensor mask;          ///< (B or 1, 1, T_q, T_k) bool, true = may look; undefined: every key.
  at::Tensor sinks;         ///< (H); undefined: none.
  bool by_library = false;  ///< plain_core() calls LibTorch's own function, which rounds in its own way.
};

struct CoreOutput {
  at::Tensor context;  ///< (B, H, T_q, d_k)
  at::Tensor dq;       ///< (B, H, T_q, d_k); undefined without d_context.
  at::Tensor dk, dv;   ///< (B, H_kv, T_k, d_k)
};

/// matmul, score rules, masked fill, softmax, matmul, and autograd, in the dtype of the input.
CoreOutput plain_core(const CoreInput& input);

/// The float64 loops, on the CPU in float64. Above kReferenceMultiplyAdds only as many (batch item, key head) pairs as
/// fit, evenly spread, go through the loops; plain_core in float64, first found equal to the loops on those, gives the
/// others.
CoreOutput judged_core(const CoreInput& input);

/// About five seconds of one processor core.
inline constexpr double kReferenceMultiplyAdds = 4e9;

/// The declared mask by the judge's own reading (checks/reference/may_look.h): (1, 1, T_q, T_k) bool, true = may look;
/// with `real_keys` (B, T_k) bool, true = a token: (B, 1, T_q, T_k). An undefined `real_keys` hides nothing.
at::Tensor declared_mask(const AttentionConfig& config, std::int64_t query_len, std::int64_t key_len,
                         const at::Tensor& real_keys, const at::Device& device);

}  // namespace attn
