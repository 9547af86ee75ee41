#include "attention/attention_input.h"

#include <string>

#include "attention/key_value_cache.h"
#include "attention/shapes.h"
#include "core/error.h"

namespace attn {

void check_input(const AttentionInput& input, const AttentionConfig& config, const at::Tensor& weight) {
  check_shape(input.x, "x", {kAnySize, kAnySize, config.d_model});
  check_same_kind(input.x, "x", weight, "the layer");
  const std::int64_t seen = input.cache != nullptr ? input.cache->tokens_seen() : 0;
  const auto check_length = [&](std::int64_t length, const std::string& what) {
    if (length <= config.max_seq_len) return;
    throw ShapeError(what + " is " + std::to_string(length) + ", more than max_seq_len (" +
                     std::to_string(config.max_seq_len) + ")");
  };
  check_length(seen + input.x.size(1), seen > 0 ? "x: T with the tokens in the cache" : "x: T");
  if (input.memory.defined()) {
    check_shape(input.memory, "memory", {input.x.size(0), kAnySize, config.d_model});
    check_same_kind(input.memory, "memory", input.x, "x");
    check_length(input.memory.size(1), "memory: T_k");
    if (config.qkv != QkvLayout::kSeparate) {
      throw ShapeError("memory: expected the separate qkv layout, got " + to_string(config.qkv) +
                       ", which makes q, k and v of one tensor");
    }
    if (config.causal || config.window.has_value() || config.rope.has_value() || config.alibi ||
        input.cache != nullptr) {
      throw ShapeError(
          "memory: its tokens have no place in the sequence of x, expected a layer without causal mask, "
          "window, rope, alibi and cache");
    }
  }
  if (input.real_keys.defined()) {
    const std::int64_t keys = input.memory.defined() ? input.memory.size(1) : input.x.size(1);
    check_shape(input.real_keys, "real_keys", {input.x.size(0), keys});
    if (input.real_keys.scalar_type() != at::kBool) {
      throw ShapeError(std::string("real_keys: expected bool, true = a token, got ") +
                       c10::toString(input.real_keys.scalar_type()));
    }
  }
  // A key that was dropped, or comes later, would be missed or seen too early.
  if (input.cache != nullptr && !config.causal) throw ShapeError("cache: expected a causal layer");
}

AttentionInput tokens_of(const AttentionInput& input, std::int64_t first, std::int64_t count) {
  constexpr std::int64_t kTokenAxis = 1;  // of x and of real_keys
  AttentionInput tokens = input;
  tokens.x = input.x.narrow(kTokenAxis, first, count);
  const bool hides_tokens_of_x = input.real_keys.defined() && !input.memory.defined();
  if (hides_tokens_of_x) tokens.real_keys = input.real_keys.narrow(kTokenAxis, first, count);
  return tokens;
}

}  // namespace attn
