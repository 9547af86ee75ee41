#include "checks/reference/plain_rounding.h"

#include <ATen/ATen.h>

#include <string>

#include "checks/reference/plain_attention.h"

namespace attn {
namespace {

double largest_finite(const at::Tensor& tensor) {
  return at::nan_to_num(tensor.abs(), 0.0, 0.0, 0.0).max().item<double>();
}

}  // namespace

double largest_score(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules, const at::Tensor& mask,
                     bool of_magnitudes) {
  const at::Tensor keys = for_query_heads(k, q.size(1)).transpose(-2, -1);
  const at::Tensor scaled = at::matmul(q, keys) * rules.scale;
  at::Tensor size = of_magnitudes ? at::matmul(q.abs(), keys.abs()) * rules.scale : scaled.abs();
  if (rules.softcap.has_value()) {
    const at::Tensor flattened = at::tanh(scaled / *rules.softcap);
    size = size * (1.0 - flattened * flattened) + (flattened * *rules.softcap).abs();
  }
  double score = largest_finite(size);
  if (!rules.slopes.empty()) {
    const at::Tensor weights = visible_softmax(plain_scores(q, keys.transpose(-2, -1), rules), mask);
    const at::Tensor bias = distance_bias(rules.slopes, q.size(-2), k.size(-2), q).abs();
    score += largest_finite((weights * bias).sum(-1));
  }
  return score;
}

RoundingSize rounding_size(const LayerInput& input, const PlainLayerOutput& output) {
  const std::string name = input.config.qkv == QkvLayout::kFused ? "c_proj" : "o_proj";
  const at::Tensor merged = output.context.transpose(1, 2).flatten(2);  // (B, T, H*d_k)
  at::Tensor sums = at::matmul(merged.abs(), input.parameters.at(name + ".weight").t().abs());
  if (input.config.output_bias()) sums = sums + input.parameters.at(name + ".bias").abs();
  const at::Tensor mask =
      declared_mask(input.config, input.x.size(1), input.key_len(), input.real_keys, input.x.device());
  const bool normed_or_turned = input.config.qk_norm || input.config.rope.has_value();
  return {largest_finite(sums), largest_score(output.q, output.k, score_rules(input.config), mask, normed_or_turned)};
}

}  // namespace attn
