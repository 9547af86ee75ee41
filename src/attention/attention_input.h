// What a forward pass of the layer is given, and when it may be. A new capability adds a field here, and no override
// changes.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "config/attention_config.h"

namespace attn {

class KeyValueCache;

/// Absent parts are undefined tensors.
struct AttentionInput {
  at::Tensor x;               ///< (B, T_q, d_model)
  at::Tensor memory = {};     ///< (B, T_k, d_model): keys and values come from it (cross-attention). Undefined: from x.
  at::Tensor real_keys = {};  ///< (B, T_k) bool, false = padding, which no query may look at; with a cache those of
                              ///< this call's tokens. Undefined: every key is a token.
  KeyValueCache* cache = nullptr;  ///< keys and values of earlier calls, and where this call's are kept. Not owned.
};

/// Throws ShapeError unless the layer of this config can be given the input. `weight`: one of its parameters, whose
/// dtype and device x must have.
void check_input(const AttentionInput& input, const AttentionConfig& config, const at::Tensor& weight);

/// `count` tokens of x from `first` on, with their padding; a memory and its padding stay whole. Views.
AttentionInput tokens_of(const AttentionInput& input, std::int64_t first, std::int64_t count);

}  // namespace attn
