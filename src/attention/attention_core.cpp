#include "attention/attention_core.h"

#include <ATen/ATen.h>

#include <limits>
#include <string>

#include "attention/distinct.h"
#include "attention/heads.h"
#include "attention/shapes.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

/// The sink is one more column of every row, which is cut off again: its share is gone. A row that sees no key gives
/// all of it to the sink.
at::Tensor softmax_with_sink(const at::Tensor& masked_scores, const at::Tensor& sink) {
  const std::int64_t keys = masked_scores.size(-1);
  std::vector<std::int64_t> shape = masked_scores.sizes().vec();
  shape.back() = 1;
  const at::Tensor column = masked_scores.dim() == 4 ? sink.view({-1, 1, 1}) : sink.view({1, 1});
  return at::softmax(at::cat({masked_scores, column.expand(shape)}, -1), -1).narrow(-1, 0, keys);
}

}  // namespace

void check_core_input(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const AttentionCoreOptions& options) {
  if (q.dim() < 2) throw ShapeError("q: expected shape (..., T_q, d_k), got " + format_shape(q.sizes().vec()));
  if (options.mask.has_value() && options.mask->scalar_type() != at::kBool) {
    // Read as booleans, an additive mask of 0 and -inf would show each query just what it must not see.
    throw ShapeError(std::string("mask: expected bool, true = may look, got ") +
                     c10::toString(options.mask->scalar_type()));
  }
  std::vector<std::int64_t> key_shape = q.sizes().vec();  // (..., T_k, d_k)
  key_shape[key_shape.size() - 2] = kAnySize;
  const bool grouped = q.dim() == 4 && k.dim() == 4 && k.size(1) > 0 && q.size(1) % k.size(1) == 0;
  if (grouped) key_shape[1] = k.size(1);
  check_shape(k, "k", key_shape);
  check_shape(v, "v", k.sizes().vec());
  check_same_kind(k, "k", q, "q");
  check_same_kind(v, "v", q, "q");
}

AttentionCoreOutput AttentionCore::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          const AttentionCoreOptions& options, AttentionObserver* observer) const {
  check_core_input(q, k, v, options);
  at::Tensor scores = announce(observer, Step::kScores, compute_scores(q, k));  // (B, H, T_q, T_k)
  scores = announce(observer, Step::kScaledScores, scale_scores(scores, options.scale));
  if (options.softcap.has_value()) {
    scores = announce(observer, Step::kCappedScores, cap_scores(scores, *options.softcap));
  }
  if (options.bias.has_value()) scores = announce(observer, Step::kBiasedScores, bias_scores(scores, *options.bias));
  const at::Tensor masked = announce(observer, Step::kMaskedScores, mask_scores(scores, options.mask));
  const at::Tensor weights = announce(observer, Step::kWeights, normalize_scores(masked, options.mask, options.sink));
  const at::Tensor dropped = announce(observer, Step::kDroppedWeights, drop_weights(weights, options.dropout));
  const at::Tensor context = announce(observer, Step::kContext, mix_values(dropped, v));  // (B, H, T_q, d_k)
  return {context, weights};
}

at::Tensor AttentionCore::compute_scores(const at::Tensor& q, const at::Tensor& k) const {
  if (q.dim() != 4) return at::matmul(q, k.transpose(-2, -1));
  return unstack_groups(at::matmul(stack_groups(q, k.size(1)), k.transpose(-2, -1)), q.size(1));
}

at::Tensor AttentionCore::scale_scores(const at::Tensor& scores, double scale) const { return scores * scale; }

at::Tensor AttentionCore::cap_scores(const at::Tensor& scaled_scores, double softcap) const {
  return (scaled_scores / softcap).tanh() * softcap;
}

at::Tensor AttentionCore::bias_scores(const at::Tensor& scores, const at::Tensor& bias) const { return scores + bias; }

at::Tensor AttentionCore::mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const {
  if (!mask.has_value()) return distinct(scores);
  return scores.masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
}

at::Tensor AttentionCore::normalize_scores(const at::Tensor& masked_scores, const std::optional<at::Tensor>& mask,
                                           const std::optional<at::Tensor>& sink) const {
  if (sink.has_value()) return softmax_with_sink(masked_scores, *sink);
  if (!mask.has_value()) return at::softmax(masked_scores, -1);
  const at::Tensor sees_no_key = mask->any(-1, /*keepdim=*/true).logical_not();  // (..., T_q, 1)
  if (!sees_no_key.any().item<bool>()) return at::softmax(masked_scores, -1);
  // Softmax of a row of -inf is NaN, and so is its gradient, even where the result is replaced. So such a row goes
  // through softmax as zeros, and its weights are replaced by 0 afterwards.
  return at::softmax(masked_scores.masked_fill(sees_no_key, 0.0), -1).masked_fill(sees_no_key, 0.0);
}

at::Tensor AttentionCore::drop_weights(const at::Tensor& weights, double dropout) const {
  if (dropout == 0.0) return distinct(weights);
  return at::dropout(weights, dropout, /*train=*/true);
}

at::Tensor AttentionCore::mix_values(const at::Tensor& dropped_weights, const at::Tensor& v) const {
  if (v.dim() != 4) return at::matmul(dropped_weights, v);
  return unstack_groups(at::matmul(stack_groups(dropped_weights, v.size(1)), v), dropped_weights.size(1));
}

AttentionCoreOutput scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                 const AttentionCoreOptions& options, AttentionObserver* observer) {
  return AttentionCore().attend(q, k, v, options, observer);
}

}  // namespace attn
