// The independent judge: attention in plain loops over double, forward and backward. It shares nothing with
// `attention/`, not even the mask: "may query i look at key j" is an `if`. Slow, never optimised, exactly one.
#pragma once

#include <cstdint>
#include <vector>

namespace attn {

/// Sizes and inputs of the core. Vectors are row-major.
struct ReferenceCoreInput {
  std::int64_t B = 0, H = 0, T_q = 0, T_k = 0, d_k = 0;
  bool causal = false;       ///< query i may look at key j when j <= i + (T_k - T_q).
  std::vector<double> q;     ///< (B, H, T_q, d_k)
  std::vector<double> k, v;  ///< (B, H, T_k, d_k)
  /// (T_q) the last key that each query may look at when causal, for queries that are not the last T_q tokens.
  /// Empty: i + (T_k - T_q).
  std::vector<std::int64_t> last_visible;
};

struct ReferenceCoreOutput {
  std::vector<double> weights;  ///< (B, H, T_q, T_k); a row that sees no key is 0.
  std::vector<double> context;  ///< (B, H, T_q, d_k)
};

struct ReferenceCoreGradients {
  std::vector<double> dq, dk, dv;
};

/// softmax(q k^T / sqrt(d_k)) v, Vaswani et al. 2017, equation 1.
ReferenceCoreOutput reference_core(const ReferenceCoreInput& input);

/// Gradients of sum(context * d_context), written out by hand:
/// dv = P^T dC, dS = P * (dC v^T - rowsum(dC * C)), dq = scale dS k, dk = scale dS^T q.
ReferenceCoreGradients reference_core_backward(const ReferenceCoreInput& input, const std::vector<double>& d_context);

}  // namespace attn
