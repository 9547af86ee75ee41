// What happens to a score, in the plainest LibTorch calls: shared by plain_attention.h and plain_layer.h. Written here
// and not in `attention/`, so that a fault there cannot widen its own limit. All of it is part of the autograd graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/attention_config.h"

namespace attn {

/// What turns q k^T into what softmax takes.
struct ScoreRules {
  double scale = 1.0;
  std::optional<double> softcap;
  std::vector<double> slopes;        ///< (H) of ALiBi; empty: no bias.
  bool capped_before_scale = false;  ///< the other way round.
};

/// What the config says.
ScoreRules score_rules(const AttentionConfig& config);

/// k or v (B, H_kv, T_k, d_k) as the H query heads use them, (B, H, T_k, d_k): neighbours share a key head.
at::Tensor for_query_heads(const at::Tensor& heads, std::int64_t H);

/// a (B, H, T, n) times b (B, H_kv, n, m), (B, H, T, m), in one product a group, as a layer that copies no key does it:
/// backwards, its long sums over all heads of the group round by more than sums over one head.
at::Tensor product_of_groups(const at::Tensor& a, const at::Tensor& b);

/// softcap * tanh(scores / softcap)
at::Tensor capped(const at::Tensor& scores, double softcap);

/// -slope * abs(i - j), (H, T_q, T_k), in the dtype of `like` on its device; the last query stands at the last key.
at::Tensor distance_bias(const std::vector<double>& slopes, std::int64_t query_len, std::int64_t key_len,
                         const at::Tensor& like);

/// Scaled, capped, biased: (B, H, T_q, T_k). q (B, H, T_q, d_k), k (B, H_kv or H, T_k, d_k).
at::Tensor plain_scores(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules);

/// softmax over the keys that `mask` (broadcastable, bool, true = may look; undefined: all) shows, of scores
/// (..., H, T_q, T_k); hidden keys get 0, all of them in a row that sees none. `sinks` (H), where defined, take their
/// share of every row.
at::Tensor visible_softmax(const at::Tensor& scores, const at::Tensor& mask, const at::Tensor& sinks = {});

/// What scaled_dot_product_attention of LibTorch takes as its one mask: `mask`, or with ALiBi the bias where a query
/// may look and -inf elsewhere. Absent: nothing.
std::optional<at::Tensor> library_mask(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules,
                                       const at::Tensor& mask);

/// The context by that function, which rounds in its own way; 0 in rows that see no key. k and v have as many heads as
/// q. Rules without a softcap.
at::Tensor library_context(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreRules& rules,
                           const at::Tensor& mask);

}  // namespace attn
