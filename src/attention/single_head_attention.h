// One head without a head axis, as lesson 2 begins: q, k, v (B, T, d_k), scores (B, T, T), output projection
// d_k to d_model. The same pipeline as the multi-head layer; only splitting and merging of heads fall away.
#pragma once

#include "attention/multi_head_attention.h"

namespace attn {

/// Takes a config with H = 1. Weights in the record are (B, T, T).
class SingleHeadAttentionImpl : public MultiHeadAttentionImpl {
 public:
  /// Throws ConfigError unless config.H is 1.
  explicit SingleHeadAttentionImpl(const AttentionConfig& config, std::shared_ptr<const AttentionCore> core = nullptr);

 protected:
  QueryKeyValue split_qkv(const Projections& projections) override;
  at::Tensor merge_context(const at::Tensor& context) override;
};
TORCH_MODULE(SingleHeadAttention);

/// Lesson 2's single head: q_proj, k_proj, v_proj, o_proj without bias, causal.
class SingleHeadCausalAttentionImpl : public SingleHeadAttentionImpl {
 public:
  SingleHeadCausalAttentionImpl(std::int64_t d_model, std::int64_t d_k, std::int64_t max_seq_len);
};
TORCH_MODULE(SingleHeadCausalAttention);

}  // namespace attn
