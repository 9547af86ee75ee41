// The layer: projections to q, k, v, heads, attention, heads merged, output projection. One implementation for every
// layout and for both lessons; CausalMultiHeadAttention and CausalSelfAttention differ in their constructors only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "attention/attention_core.h"
#include "attention/attention_input.h"
#include "attention/heads.h"
#include "attention/key_value_cache.h"
#include "attention/mask.h"
#include "attention/rms_norm.h"
#include "config/attention_config.h"

namespace attn {

/// Everything a forward pass returns.
struct AttentionOutput {
  at::Tensor output;                  ///< (B, T, d_model)
  std::optional<at::Tensor> weights;  ///< (B, H, T, T_k) before dropout; absent: this engine has none.
};

/// What the projections gave: one tensor for the fused layouts, three for the separate one.
struct Projections {
  std::optional<at::Tensor> qkv;          ///< (B, T, (H + 2*H_kv)*d_k)
  std::optional<QueryKeyValue> separate;  ///< (B, T, H*d_k), and (B, T_k, H_kv*d_k) twice
};

/// The pipeline of named steps. Derives from nn::Module, not nn::Cloneable, whose clone() would give a subclass's
/// object back as the base class.
class MultiHeadAttentionImpl : public torch::nn::Module {
 public:
  /// Parameters are drawn on the CPU in float32 from torch's generator. `core` defaults to the config's engine.
  /// Throws ConfigError when the config is not valid.
  explicit MultiHeadAttentionImpl(const AttentionConfig& config, std::shared_ptr<const AttentionCore> core = nullptr);

  /// x (B, T, d_model) of the parameters' dtype and device, T <= max_seq_len. Throws ShapeError.
  AttentionOutput forward(const at::Tensor& x);

  /// The same, each step announced to `observer`. With a cache x holds the tokens that follow those that were seen, at
  /// most max_seq_len in all. A memory needs the separate layout and a layer that is not causal.
  AttentionOutput forward(const AttentionInput& input, AttentionObserver* observer = nullptr);

  /// The part between q, k, v and context, with this layer's scale, dropout and other score options. q, k, v as they
  /// enter the scores: normed and turned; `mask` as in AttentionCoreOptions. Queries are taken as the last tokens of
  /// the keys' sequence.
  AttentionCoreOutput attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const std::optional<at::Tensor>& mask, AttentionObserver* observer = nullptr);

  /// The mask that a forward pass applies: causal AND window AND the config's own AND, where real_keys (B, T_k) is
  /// defined, padding. (T_q, T_k) bool, or (B, 1, T_q, T_k) with padding ((B, T_q, T_k) in a single-head layer). Absent
  /// when nothing is hidden.
  virtual std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys = {}) const;

  /// What attend() tells its core.
  AttentionCoreOptions core_options(std::int64_t query_len, std::int64_t key_len,
                                    const std::optional<at::Tensor>& mask) const;

  const AttentionConfig& config() const { return config_; }

  /// An empty cache for this layer, of the kind that it works with.
  virtual std::unique_ptr<KeyValueCache> make_cache() const;

  /// Switches the causal mask off or on, for a proof that it matters.
  void set_causal(bool causal);

  /// Takes every mask of the config off, causal, window and its own, for good. Padding stays.
  void remove_masks();

  /// Another dropout probability, 0 <= dropout < 1. Throws ConfigError.
  void set_dropout(double dropout);

  // A cast to another dtype leaves the boolean mask boolean (LibTorch would cast it too).
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

 protected:
  /// Keys and values are made of `memory`, which is x itself in self-attention.
  virtual Projections project_qkv(const at::Tensor& x, const at::Tensor& memory);
  virtual QueryKeyValue split_qkv(const Projections& projections);
  virtual QueryKeyValue normalize_heads(const QueryKeyValue& heads);
  /// `first_position`: that of the first query and key in the sequence.
  virtual QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first_position);
  /// Keeps the keys and values of this call, and returns the queries with all that are kept.
  virtual QueryKeyValue remember(KeyValueCache& cache, const QueryKeyValue& heads, const at::Tensor& real_keys);
  virtual at::Tensor merge_context(const at::Tensor& context);
  virtual at::Tensor project_output(const at::Tensor& merged);

  AttentionConfig config_;
  std::vector<torch::nn::Linear> qkv_layers_;  ///< one (fused layouts) or three: q, k, v.
  torch::nn::Linear output_layer_{nullptr};
  RmsNorm q_norm_{nullptr}, k_norm_{nullptr};  ///< with qk_norm only.
  at::Tensor sinks_;                           ///< parameter `sinks` (H); undefined unless the config has a sink.

 private:
  void announce_projections(const Projections& projections, AttentionObserver* observer) const;
  void restore_boolean_mask();

  std::shared_ptr<const AttentionCore> core_;
  at::Tensor causal_mask_;  ///< buffer `causal_mask` (max_seq_len, max_seq_len), bool; undefined unless causal.
};

TORCH_MODULE(MultiHeadAttention);

/// Lesson 2's layer: fused thirds (c_attn, c_proj), with bias, causal.
class CausalMultiHeadAttentionImpl : public MultiHeadAttentionImpl {
 public:
  CausalMultiHeadAttentionImpl(std::int64_t d_model, std::int64_t num_heads, std::int64_t max_seq_len = 1024);
};
TORCH_MODULE(CausalMultiHeadAttention);

/// Lesson 1's layer: q, k, v of each head side by side (qkv_proj, o_proj), causal.
class CausalSelfAttentionImpl : public MultiHeadAttentionImpl {
 public:
  CausalSelfAttentionImpl(std::int64_t embed_dim, std::int64_t num_heads, std::int64_t max_seq_len, bool bias = false,
                          double dropout = 0.1);
};
TORCH_MODULE(CausalSelfAttention);

}  // namespace attn
