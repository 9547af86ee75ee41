#include "checks/reference/plain_scores.h"

#include <ATen/ATen.h>

#include <limits>

#include "checks/reference/reference_attention.h"
#include "checks/reference/reference_head.h"

namespace attn {
namespace {

at::Tensor softmax_with_sinks(const at::Tensor& scores, const at::Tensor& sinks) {
  if (!sinks.defined()) return at::softmax(scores, -1);
  std::vector<std::int64_t> column = scores.sizes().vec();
  column.back() = 1;
  const at::Tensor with_sinks = at::cat({scores, sinks.view({-1, 1, 1}).expand(column)}, -1);
  return at::softmax(with_sinks, -1).narrow(-1, 0, scores.size(-1));
}

}  // namespace

ScoreRules score_rules(const AttentionConfig& config) {
  ScoreRules rules{config.scale(), config.softcap, {}};
  if (!config.alibi) return rules;
  for (std::int64_t h = 0; h < config.H; ++h) rules.slopes.push_back(reference_alibi_slope(h, config.H));
  return rules;
}

at::Tensor for_query_heads(const at::Tensor& heads, std::int64_t H) {
  if (heads.size(1) == H) return heads;
  AttentionConfig grouped;
  grouped.H = H;
  grouped.given_H_kv = heads.size(1);
  std::vector<std::int64_t> key_heads;
  for (std::int64_t h = 0; h < H; ++h) key_heads.push_back(reference_key_head(grouped, h));
  return heads.index_select(1, at::tensor(key_heads, at::kLong).to(heads.device()));
}

at::Tensor product_of_groups(const at::Tensor& a, const at::Tensor& b) {
  const std::int64_t B = a.size(0), H = a.size(1), T = a.size(2), n = a.size(3), H_kv = b.size(1);
  if (H == H_kv) return at::matmul(a, b);
  return at::matmul(a.reshape({B, H_kv, H / H_kv * T, n}), b).view({B, H, T, b.size(3)});
}

at::Tensor capped(const at::Tensor& scores, double softcap) { return at::tanh(scores / softcap) * softcap; }

at::Tensor distance_bias(const std::vector<double>& slopes, std::int64_t query_len, std::int64_t key_len,
                         const at::Tensor& like) {
  const at::Tensor query = at::arange(key_len - query_len, key_len, at::kDouble).unsqueeze(1);
  const at::Tensor distance = (query - at::arange(key_len, at::kDouble)).abs();
  return (-at::tensor(slopes, at::kDouble).view({-1, 1, 1}) * distance).to(like.options());
}

at::Tensor plain_scores(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules) {
  const at::Tensor products = product_of_groups(q, k.transpose(-2, -1));
  at::Tensor scores = products * rules.scale;
  if (rules.softcap.has_value()) {
    scores =
        rules.capped_before_scale ? capped(products, *rules.softcap) * rules.scale : capped(scores, *rules.softcap);
  }
  if (rules.slopes.empty()) return scores;
  return scores + distance_bias(rules.slopes, q.size(-2), k.size(-2), scores);
}

at::Tensor visible_softmax(const at::Tensor& scores, const at::Tensor& mask, const at::Tensor& sinks) {
  if (!mask.defined()) return softmax_with_sinks(scores, sinks);
  const at::Tensor hidden = mask.logical_not();
  const at::Tensor sees_no_key = hidden.all(-1, /*keepdim=*/true);
  // A row of -inf alone has no softmax, and no gradient either: it passes as zeros and is put to 0 afterwards.
  const at::Tensor masked = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  return softmax_with_sinks(masked.masked_fill(sees_no_key, 0.0), sinks).masked_fill(sees_no_key, 0.0);
}

std::optional<at::Tensor> library_mask(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules,
                                       const at::Tensor& mask) {
  if (rules.slopes.empty()) return mask.defined() ? std::optional(mask) : std::nullopt;
  const at::Tensor bias = distance_bias(rules.slopes, q.size(-2), k.size(-2), q);
  if (!mask.defined()) return bias;
  return bias.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
}

at::Tensor library_context(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreRules& rules,
                           const at::Tensor& mask) {
  if (!mask.defined()) {
    const std::optional<at::Tensor> bias = library_mask(q, k, rules, mask);
    return at::scaled_dot_product_attention(q, k, v, bias, /*dropout_p=*/0.0, /*is_causal=*/false, rules.scale);
  }
  const at::Tensor sees_no_key = mask.any(-1, /*keepdim=*/true).logical_not();
  const std::optional<at::Tensor> shown = library_mask(q, k, rules, mask.logical_or(sees_no_key));
  const at::Tensor context =
      at::scaled_dot_product_attention(q, k, v, shown, /*dropout_p=*/0.0, /*is_causal=*/false, rules.scale);
  return context.masked_fill(sees_no_key, 0.0);
}

}  // namespace attn
