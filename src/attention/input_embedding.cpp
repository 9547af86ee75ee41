#include "attention/input_embedding.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "attention/distinct.h"
#include "attention/shapes.h"
#include "core/error.h"

namespace attn {
namespace {

/// Position t, channel 2i: sin(t / 10000^(2i / d_model)); channel 2i + 1: the cosine. Built in float64: the angles of
/// late positions need it.
at::Tensor sinusoidal_table(std::int64_t length, std::int64_t d_model) {
  const at::Tensor position = at::arange(length, at::kDouble).unsqueeze(1);                           // (T, 1)
  const at::Tensor exponent = at::arange(0, d_model, 2, at::kDouble) / static_cast<double>(d_model);  // (d_model / 2)
  const at::Tensor angle = position * (-std::log(10000.0) * exponent).exp();  // (T, d_model / 2)
  at::Tensor table = at::empty({length, d_model}, at::kDouble);
  table.slice(1, 0, d_model, 2).copy_(angle.sin());
  table.slice(1, 1, d_model, 2).copy_(angle.cos());
  return table;
}

void require_positive(const char* name, std::int64_t value) {
  if (value < 1) throw ConfigError(std::string(name) + " must be at least 1, got " + std::to_string(value));
}

}  // namespace

InputEmbeddingImpl::InputEmbeddingImpl(std::int64_t vocab_size, std::int64_t d_model, std::int64_t max_seq_len,
                                       Positions positions)
    : max_seq_len_(max_seq_len), positions_(positions) {
  require_positive("vocab_size", vocab_size);
  require_positive("d_model", d_model);
  require_positive("max_seq_len", max_seq_len);
  token_embedding_ = register_module("token_embedding", torch::nn::Embedding(vocab_size, d_model));
  if (positions_ == Positions::kLearned) {
    position_embedding_ = register_module("position_embedding", torch::nn::Embedding(max_seq_len, d_model));
  } else if (positions_ == Positions::kSinusoidal) {
    if (d_model % 2 != 0) {
      throw ConfigError("sinusoidal positions need an even d_model, got " + std::to_string(d_model));
    }
    position_table_ = register_buffer("position_table", sinusoidal_table(max_seq_len, d_model));
  }
}

at::Tensor InputEmbeddingImpl::forward(const at::Tensor& tokens, AttentionObserver* observer,
                                       const at::Tensor& real_tokens) {
  check_shape(tokens, "tokens", {kAnySize, kAnySize});
  const std::int64_t length = tokens.size(1);
  const std::int64_t vocab_size = token_embedding_->weight.size(0);
  if (tokens.scalar_type() != at::kLong) throw ShapeError("tokens: ids must be 64-bit integers");
  if (length > max_seq_len_) {
    throw ShapeError("tokens: T is " + std::to_string(length) + ", more than max_seq_len (" +
                     std::to_string(max_seq_len_) + ")");
  }
  if (tokens.numel() > 0) {
    const std::int64_t smallest = tokens.min().item<std::int64_t>();
    const std::int64_t largest = tokens.max().item<std::int64_t>();
    if (smallest < 0 || largest >= vocab_size) {
      throw ShapeError("tokens: id " + std::to_string(smallest < 0 ? smallest : largest) +
                       " is outside the vocabulary, 0 to " + std::to_string(vocab_size - 1));
    }
  }

  announce(observer, Step::kTokens, tokens);
  const at::Tensor embedded =
      announce(observer, Step::kTokenEmbedding, token_embedding_->forward(tokens));  // (B, T, d_model)
  if (positions_ == Positions::kNone) return distinct(embedded);

  const at::Tensor positions = positions_of(tokens, real_tokens);
  const at::Tensor place = positions_ == Positions::kLearned
                               ? position_embedding_->forward(positions)
                               : position_table_.index({positions}).to(embedded.scalar_type());
  return embedded + announce(observer, Step::kPositionEmbedding, place);  // (B, T, d_model) + (T, d_model)
}

/// (T), or (B, T) where items are padded: the place of a token among its item's tokens. Padding stands where the token
/// before it stands, or at 0: nobody looks at it.
at::Tensor InputEmbeddingImpl::positions_of(const at::Tensor& tokens, const at::Tensor& real_tokens) const {
  if (!real_tokens.defined()) return at::arange(tokens.size(1), tokens.options());
  check_shape(real_tokens, "real_tokens", tokens.sizes().vec());
  return (real_tokens.to(at::kLong).cumsum(1) - 1).clamp_min(0);
}

}  // namespace attn
