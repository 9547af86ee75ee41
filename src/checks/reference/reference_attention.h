// The independent judge of everything between q, k, v and context: every head of every item through the loops of
// reference_head.h, with the judge's own reading of which key head serves which query head (here) and of which key a
// query may look at (may_look.h). No LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "config/attention_config.h"

namespace attn {

/// Sizes and inputs of the core. Vectors are row-major.
struct ReferenceCoreInput {
  AttentionConfig config;  ///< H, H_kv, d_k, the mask, and what happens to the scores.
  std::int64_t B = 0, T_q = 0, T_k = 0;
  std::vector<double> q;                ///< (B, H, T_q, d_k)
  std::vector<double> k, v;             ///< (B, H_kv, T_k, d_k)
  std::vector<double> sinks;            ///< (H), with config.sink.
  std::vector<bool> real_keys;          ///< (B, T_k), false = padding, which no query sees. Empty: no padding.
  std::vector<std::int64_t> positions;  ///< (T_q) where each query stands. Empty: as may_look.h says.
};

struct ReferenceCoreOutput {
  std::vector<double> weights;  ///< (B, H, T_q, T_k); a row that sees no key is 0.
  std::vector<double> context;  ///< (B, H, T_q, d_k)
};

struct ReferenceCoreGradients {
  std::vector<double> dq, dk, dv;
  std::vector<double> dsinks;  ///< (H); empty without sinks.
};

/// The key head that query head h uses: neighbours share one.
std::int64_t reference_key_head(const AttentionConfig& config, std::int64_t h);

/// softmax(q k^T / sqrt(d_k)) v, Vaswani et al. 2017, equation 1, with what the config adds to it.
ReferenceCoreOutput reference_core(const ReferenceCoreInput& input);

/// Gradients of sum(context * d_context), written out by hand; d_context: (B, H, T_q, d_k).
ReferenceCoreGradients reference_core_backward(const ReferenceCoreInput& input, const std::vector<double>& d_context);

}  // namespace attn
