// The independent judge of one head: attention in plain loops over double, forward and backward, with everything that
// may happen to a score. It shares nothing with `attention/`. Slow, never optimised, exactly one: reference_attention.h
// calls it for each head. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace attn {

/// Row-major.
struct ReferenceHead {
  std::int64_t T_q = 0, T_k = 0, d_k = 0;
  std::span<const double> q;     ///< (T_q, d_k)
  std::span<const double> k, v;  ///< (T_k, d_k)
  std::vector<bool> visible;     ///< (T_q, T_k), true = may look.
  // The score of query i and key j: s = scale * q.k, then softcap * tanh(s / softcap), then - slope * abs(p_i - j).
  double scale = 1.0;
  std::optional<double> softcap;
  double slope = 0.0;                   ///< of ALiBi; 0: none.
  std::vector<std::int64_t> positions;  ///< (T_q) where each query stands; only ALiBi asks.
  std::optional<double> sink;           ///< one more score in the softmax of every row, which has no value.
};

struct ReferenceHeadOutput {
  std::vector<double> weights;       ///< (T_q, T_k); a row that sees no key is 0.
  std::vector<double> sink_weights;  ///< (T_q) what the sink takes of each row; 0 without one.
  std::vector<double> context;       ///< (T_q, d_k)
};

/// The last score of a pair, and its slope along the raw product q.k.
struct ReferenceScore {
  double value = 0.0, slope = 0.0;
};
ReferenceScore reference_score(const ReferenceHead& head, std::int64_t i, std::int64_t j);

/// softmax(scores) v; with a sink exp(s_j) / (sum exp(s) + exp(sink)).
ReferenceHeadOutput reference_head(const ReferenceHead& head);

/// Adds the gradients of sum(context * d_context), written out by hand, to dq (T_q, d_k), dk and dv (T_k, d_k), and
/// returns that of the sink: dv += P^T dC, dS = P * (dC v^T - rowsum(dC * C)), times the slope of the score: dq += dS
/// k, dk += dS^T q; the sink has no value, so its dC v^T is 0.
double reference_head_backward(const ReferenceHead& head, std::span<const double> d_context, std::span<double> dq,
                               std::span<double> dk, std::span<double> dv);

/// The ALiBi slope of head h of H (Press et al. 2022, and their code for an H that is no power of two): with n the
/// largest power of two up to H, 2^(-8 (h+1) / n) for the first n, then every second slope of 2n heads.
double reference_alibi_slope(std::int64_t h, std::int64_t H);

}  // namespace attn
