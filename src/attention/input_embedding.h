// Token ids to the layer's input: x = token_embedding[id] + position_embedding[t].
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include "attention/observer.h"
#include "config/attention_config.h"

namespace attn {

class InputEmbeddingImpl : public torch::nn::Module {
 public:
  /// Throws ConfigError for a size below 1, or sinusoidal positions of an odd width.
  InputEmbeddingImpl(std::int64_t vocab_size, std::int64_t d_model, std::int64_t max_seq_len,
                     Positions positions = Positions::kLearned);

  /// tokens (B, T) int64, T <= max_seq_len, ids in [0, vocab_size). Returns x (B, T, d_model). Throws ShapeError.
  /// `real_tokens` (B, T) bool, false = padding: each item's positions then begin at its first token, and the position
  /// embedding is (B, T, d_model). Undefined: at 0.
  at::Tensor forward(const at::Tensor& tokens, AttentionObserver* observer = nullptr,
                     const at::Tensor& real_tokens = {});

 private:
  at::Tensor positions_of(const at::Tensor& tokens, const at::Tensor& real_tokens) const;

  std::int64_t max_seq_len_;
  Positions positions_;
  torch::nn::Embedding token_embedding_{nullptr};
  torch::nn::Embedding position_embedding_{nullptr};  ///< learned positions only.
  at::Tensor position_table_;                         ///< sinusoidal positions only; buffer `position_table`.
};
TORCH_MODULE(InputEmbedding);

}  // namespace attn
