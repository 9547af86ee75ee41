#include "checks/reference_attention.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace attn {
namespace {

/// One (batch, head) pair's part of the vectors.
struct Slice {
  const ReferenceCoreInput& input;
  std::int64_t index;  ///< batch * H + head

  std::size_t query(std::int64_t i, std::int64_t c) const { return place((index * input.T_q + i) * input.d_k + c); }
  std::size_t key(std::int64_t j, std::int64_t c) const { return place((index * input.T_k + j) * input.d_k + c); }
  std::size_t pair(std::int64_t i, std::int64_t j) const { return place((index * input.T_q + i) * input.T_k + j); }

  bool may_look(std::int64_t i, std::int64_t j) const {
    if (!input.causal) return true;
    if (!input.last_visible.empty()) return j <= input.last_visible[place(i)];
    return j <= i + (input.T_k - input.T_q);
  }

  double scaled_score(std::int64_t i, std::int64_t j) const {
    double sum = 0.0;
    for (std::int64_t c = 0; c < input.d_k; ++c) sum += input.q[query(i, c)] * input.k[key(j, c)];
    return sum / std::sqrt(static_cast<double>(input.d_k));
  }

 private:
  static std::size_t place(std::int64_t number) { return static_cast<std::size_t>(number); }
};

std::vector<double> zeros(std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t cols) {
  return std::vector<double>(static_cast<std::size_t>(B * H * rows * cols), 0.0);
}

void softmax_row(const Slice& slice, std::int64_t i, std::vector<double>& weights) {
  const std::int64_t T_k = slice.input.T_k;
  double largest = -std::numeric_limits<double>::infinity();
  bool sees_a_key = false;
  for (std::int64_t j = 0; j < T_k; ++j) {
    if (!slice.may_look(i, j)) continue;
    sees_a_key = true;
    const double score = slice.scaled_score(i, j);
    weights[slice.pair(i, j)] = score;
    if (!(score <= largest)) largest = score;  // also taken when the score is NaN, so that it reaches the result
  }
  if (!sees_a_key) return;  // the row stays 0
  double sum = 0.0;
  for (std::int64_t j = 0; j < T_k; ++j) {
    if (!slice.may_look(i, j)) continue;
    double& weight = weights[slice.pair(i, j)];
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (std::int64_t j = 0; j < T_k; ++j) {
    if (slice.may_look(i, j)) weights[slice.pair(i, j)] /= sum;
  }
}

}  // namespace

ReferenceCoreOutput reference_core(const ReferenceCoreInput& input) {
  ReferenceCoreOutput output{zeros(input.B, input.H, input.T_q, input.T_k),
                             zeros(input.B, input.H, input.T_q, input.d_k)};
  for (std::int64_t index = 0; index < input.B * input.H; ++index) {
    const Slice slice{input, index};
    for (std::int64_t i = 0; i < input.T_q; ++i) {
      softmax_row(slice, i, output.weights);
      for (std::int64_t j = 0; j < input.T_k; ++j) {
        if (!slice.may_look(i, j)) continue;  // a hidden value takes no part, not even as 0 * NaN
        for (std::int64_t c = 0; c < input.d_k; ++c) {
          output.context[slice.query(i, c)] += output.weights[slice.pair(i, j)] * input.v[slice.key(j, c)];
        }
      }
    }
  }
  return output;
}

ReferenceCoreGradients reference_core_backward(const ReferenceCoreInput& input, const std::vector<double>& d_context) {
  const ReferenceCoreOutput forward = reference_core(input);
  const double scale = 1.0 / std::sqrt(static_cast<double>(input.d_k));
  ReferenceCoreGradients gradients{zeros(input.B, input.H, input.T_q, input.d_k),
                                   zeros(input.B, input.H, input.T_k, input.d_k),
                                   zeros(input.B, input.H, input.T_k, input.d_k)};
  for (std::int64_t index = 0; index < input.B * input.H; ++index) {
    const Slice slice{input, index};
    for (std::int64_t i = 0; i < input.T_q; ++i) {
      // sum over j of P[i,j] dP[i,j] equals dC[i] . C[i]
      double row_sum = 0.0;
      for (std::int64_t c = 0; c < input.d_k; ++c) {
        row_sum += d_context[slice.query(i, c)] * forward.context[slice.query(i, c)];
      }
      for (std::int64_t j = 0; j < input.T_k; ++j) {
        if (!slice.may_look(i, j)) continue;
        const double weight = forward.weights[slice.pair(i, j)];
        double d_weight = 0.0;
        for (std::int64_t c = 0; c < input.d_k; ++c) {
          d_weight += d_context[slice.query(i, c)] * input.v[slice.key(j, c)];
        }
        const double d_raw_score = scale * weight * (d_weight - row_sum);
        for (std::int64_t c = 0; c < input.d_k; ++c) {
          gradients.dq[slice.query(i, c)] += d_raw_score * input.k[slice.key(j, c)];
          gradients.dk[slice.key(j, c)] += d_raw_score * input.q[slice.query(i, c)];
          gradients.dv[slice.key(j, c)] += weight * d_context[slice.query(i, c)];
        }
      }
    }
  }
  return gradients;
}

}  // namespace attn
