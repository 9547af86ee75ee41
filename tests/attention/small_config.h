// The layer that tests change one thing of: small, causal, as plain as can be.
#pragma once

#include "config/attention_config.h"

namespace attn::test {

inline AttentionConfig small_config() {
  AttentionConfig config;
  config.d_model = 12;
  config.H = 3;
  config.max_seq_len = 16;
  return config;
}

}  // namespace attn::test
