#include "checks/reference/plain_rounding.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <string>

#include <ATen/CPUGeneratorImpl.h>

#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"

namespace attn {
namespace {

double largest_finite(const at::Tensor& tensor) {
  return at::nan_to_num(tensor.abs(), 0.0, 0.0, 0.0).max().item<double>();
}

/// Every number half a unit in the last place of `type` up or down: at most what rounding to the nearest does.
at::Tensor rounded_at_random(const at::Tensor& tensor, at::ScalarType type, at::Generator& generator) {
  const at::Tensor up = at::randint(0, 2, tensor.sizes(), generator, at::kDouble).to(tensor.device()) * 2.0 - 1.0;
  return tensor + tensor * up * (epsilon_of(type) / 2.0);
}

}  // namespace

double largest_score(const at::Tensor& q, const at::Tensor& k, const ScoreRules& rules, const at::Tensor& mask,
                     bool of_magnitudes) {
  const at::Tensor keys = for_query_heads(k, q.size(1)).transpose(-2, -1);
  const at::Tensor scaled = at::matmul(q, keys) * rules.scale;
  const bool by_sums = of_magnitudes || rules.softcap.has_value();
  at::Tensor size = by_sums ? at::matmul(q.abs(), keys.abs()) * rules.scale : scaled.abs();
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

double gradient_change_by_rounding(const LayerInput& input, const at::Tensor& d_output, at::ScalarType type,
                                   std::uint64_t seed) {
  constexpr int kTries = 3;
  const LayerInput exact = in_double(input);
  const LayerRules rules = rules_of(exact.config);
  const at::Tensor exact_d_output = d_output.to(at::kDouble);
  const std::map<std::string, at::Tensor> gradients = plain_layer_backward(exact, rules, exact_d_output);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto rounded = [&](const at::Tensor& tensor) { return rounded_at_random(tensor, type, generator); };
  double largest = 0.0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    LayerInput moved = exact;
    moved.x = rounded(exact.x);
    if (exact.memory.defined()) moved.memory = rounded(exact.memory);
    for (auto& [name, value] : moved.parameters) value = rounded(value);
    for (const auto& [name, gradient] : plain_layer_backward(moved, rules, rounded(exact_d_output))) {
      if (gradient.defined()) largest = std::max(largest, largest_finite(gradient - gradients.at(name)));
    }
  }
  if (rules.norm == NormRule::kNone) return largest;
  LayerRules without_root = rules;
  without_root.norm_root_fixed = true;
  for (const auto& [name, term] : plain_layer_backward(exact, without_root, exact_d_output)) {
    const bool is_input = name == "x" || name == "memory";
    if (is_input && term.defined()) largest = std::max(largest, epsilon_of(type) * largest_finite(term));
  }
  return largest;
}

}  // namespace attn
