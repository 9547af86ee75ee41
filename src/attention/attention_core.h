// What happens between q, k, v and context: scores, scale, mask, softmax, dropout, mixing. One virtual step each, so
// that another engine, or a planted fault, overrides just what it changes. No parameters live here.
//
//   Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k) + M) V          Vaswani et al. 2017, equation 1
//
// Scores are scaled, then capped, then biased, then masked: the order of the models that have these steps.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "attention/observer.h"

namespace attn {

/// What attention is told beside q, k and v.
struct AttentionCoreOptions {
  double scale = 1.0;  ///< usually 1/sqrt(d_k).
  std::optional<at::Tensor>
      mask;              ///< bool, true = may look, broadcastable to (..., T_q, T_k); absent: every key is visible.
  double dropout = 0.0;  ///< share of weights set to 0, the rest scaled by 1/(1 - dropout). 0 in evaluation.
  std::optional<double> softcap;   ///< scaled scores s become softcap * tanh(s / softcap) (Gemma 2).
  std::optional<at::Tensor> bias;  ///< added to the scores, broadcastable to (..., T_q, T_k): alibi.
  /// (H): a score beside those of the keys, which takes its share of the softmax and has no value (gpt-oss).
  std::optional<at::Tensor> sink;
};

struct AttentionCoreOutput {
  at::Tensor context;                 ///< (..., T_q, d_k)
  std::optional<at::Tensor> weights;  ///< (..., T_q, T_k) before dropout; absent: this engine has none.
};

/// Throws ShapeError unless q (..., T_q, d_k) and k, v (..., T_k, d_k) fit together, are of one dtype and device, and
/// the mask is boolean. With a head axis k and v may have fewer heads than q, a divisor of H.
void check_core_input(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const AttentionCoreOptions& options);

/// The explicit engine. Takes (B, H, T, d_k), with k and v of as many heads or, grouped, of H_kv; or (B, T, d_k).
class AttentionCore {
 public:
  virtual ~AttentionCore() = default;

  /// q (B, H, T_q, d_k), k and v (B, H_kv, T_k, d_k), as check_core_input() has it. Throws ShapeError.
  /// Query head h uses key head floor(h * H_kv / H).
  /// A query that may look at no key gets weights 0 and context 0, and finite gradients. A query whose visible scores
  /// are all -inf, or hold NaN or +inf, gets NaN: what overflowed is never turned into a finite number.
  virtual AttentionCoreOutput attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const AttentionCoreOptions& options, AttentionObserver* observer = nullptr) const;

 protected:
  virtual at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const;
  virtual at::Tensor scale_scores(const at::Tensor& scores, double scale) const;
  virtual at::Tensor cap_scores(const at::Tensor& scaled_scores, double softcap) const;
  virtual at::Tensor bias_scores(const at::Tensor& scores, const at::Tensor& bias) const;
  virtual at::Tensor mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const;
  virtual at::Tensor normalize_scores(const at::Tensor& masked_scores, const std::optional<at::Tensor>& mask,
                                      const std::optional<at::Tensor>& sink) const;
  virtual at::Tensor drop_weights(const at::Tensor& weights, double dropout) const;
  virtual at::Tensor mix_values(const at::Tensor& dropped_weights, const at::Tensor& v) const;
};

/// The explicit engine as a function, for use without a module.
AttentionCoreOutput scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                 const AttentionCoreOptions& options,
                                                 AttentionObserver* observer = nullptr);

}  // namespace attn
