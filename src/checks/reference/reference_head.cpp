#include "checks/reference/reference_head.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>

namespace attn {
namespace {

/// Where the numbers of a head stand.
struct Places {
  const ReferenceHead& head;

  std::size_t vector(std::int64_t t, std::int64_t c) const { return static_cast<std::size_t>(t * head.d_k + c); }
  std::size_t pair(std::int64_t i, std::int64_t j) const { return static_cast<std::size_t>(i * head.T_k + j); }
};

void softmax_row(const ReferenceHead& head, std::int64_t i, ReferenceHeadOutput& output) {
  const Places at{head};
  double largest = -std::numeric_limits<double>::infinity();
  bool sees_a_key = false;
  for (std::int64_t j = 0; j < head.T_k; ++j) {
    if (!head.visible[at.pair(i, j)]) continue;
    sees_a_key = true;
    const double score = reference_score(head, i, j).value;
    output.weights[at.pair(i, j)] = score;
    if (!(score <= largest)) largest = score;  // also taken when the score is NaN, so that it reaches the result
  }
  if (!sees_a_key) return;  // the row stays 0
  if (head.sink.has_value() && *head.sink > largest) largest = *head.sink;
  double sum = 0.0;
  for (std::int64_t j = 0; j < head.T_k; ++j) {
    if (!head.visible[at.pair(i, j)]) continue;
    double& weight = output.weights[at.pair(i, j)];
    weight = std::exp(weight - largest);
    sum += weight;
  }
  const double of_sink = head.sink.has_value() ? std::exp(*head.sink - largest) : 0.0;
  sum += of_sink;
  for (std::int64_t j = 0; j < head.T_k; ++j) {
    if (head.visible[at.pair(i, j)]) output.weights[at.pair(i, j)] /= sum;
  }
  output.sink_weights[static_cast<std::size_t>(i)] = of_sink / sum;
}

}  // namespace

ReferenceScore reference_score(const ReferenceHead& head, std::int64_t i, std::int64_t j) {
  const Places at{head};
  double product = 0.0;
  for (std::int64_t c = 0; c < head.d_k; ++c) product += head.q[at.vector(i, c)] * head.k[at.vector(j, c)];
  ReferenceScore score{product * head.scale, head.scale};
  if (head.softcap.has_value()) {
    const double capped = std::tanh(score.value / *head.softcap);
    score.value = *head.softcap * capped;
    score.slope *= 1.0 - capped * capped;
  }
  if (head.slope != 0.0) {
    const std::int64_t distance = std::abs(head.positions[static_cast<std::size_t>(i)] - j);
    score.value -= head.slope * static_cast<double>(distance);
  }
  return score;
}

ReferenceHeadOutput reference_head(const ReferenceHead& head) {
  const Places at{head};
  ReferenceHeadOutput output;
  output.weights.assign(static_cast<std::size_t>(head.T_q * head.T_k), 0.0);
  output.sink_weights.assign(static_cast<std::size_t>(head.T_q), 0.0);
  output.context.assign(static_cast<std::size_t>(head.T_q * head.d_k), 0.0);
  for (std::int64_t i = 0; i < head.T_q; ++i) {
    softmax_row(head, i, output);
    for (std::int64_t j = 0; j < head.T_k; ++j) {
      if (!head.visible[at.pair(i, j)]) continue;  // a hidden value takes no part, not even as 0 * NaN
      for (std::int64_t c = 0; c < head.d_k; ++c) {
        output.context[at.vector(i, c)] += output.weights[at.pair(i, j)] * head.v[at.vector(j, c)];
      }
    }
  }
  return output;
}

double reference_head_backward(const ReferenceHead& head, std::span<const double> d_context, std::span<double> dq,
                               std::span<double> dk, std::span<double> dv) {
  const Places at{head};
  const ReferenceHeadOutput forward = reference_head(head);
  double d_sink = 0.0;
  for (std::int64_t i = 0; i < head.T_q; ++i) {
    // sum over j of P[i,j] dP[i,j] equals dC[i] . C[i]
    double row_sum = 0.0;
    for (std::int64_t c = 0; c < head.d_k; ++c) {
      row_sum += d_context[at.vector(i, c)] * forward.context[at.vector(i, c)];
    }
    for (std::int64_t j = 0; j < head.T_k; ++j) {
      if (!head.visible[at.pair(i, j)]) continue;
      const double weight = forward.weights[at.pair(i, j)];
      double d_weight = 0.0;
      for (std::int64_t c = 0; c < head.d_k; ++c) d_weight += d_context[at.vector(i, c)] * head.v[at.vector(j, c)];
      // Only a softcap bends the score; without one the product need not be worked out again.
      const double slope = head.softcap.has_value() ? reference_score(head, i, j).slope : head.scale;
      const double d_product = slope * weight * (d_weight - row_sum);
      for (std::int64_t c = 0; c < head.d_k; ++c) {
        dq[at.vector(i, c)] += d_product * head.k[at.vector(j, c)];
        dk[at.vector(j, c)] += d_product * head.q[at.vector(i, c)];
        dv[at.vector(j, c)] += weight * d_context[at.vector(i, c)];
      }
    }
    d_sink -= forward.sink_weights[static_cast<std::size_t>(i)] * row_sum;
  }
  return d_sink;
}

double reference_alibi_slope(std::int64_t h, std::int64_t H) {
  std::int64_t n = 1;
  while (2 * n <= H) n *= 2;
  const double place = h < n ? static_cast<double>(h + 1) : static_cast<double>(h - n) + 0.5;
  return std::exp2(-8.0 * place / static_cast<double>(n));
}

}  // namespace attn
