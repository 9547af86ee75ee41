#include "checks/reference/plain_layer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <stdexcept>
#include <vector>

#include "checks/reference/plain_attention.h"
#include "checks/reference/plain_heads.h"

namespace attn {
namespace {

/// The same numbers; of the gradient only this much goes back.
at::Tensor with_gradient_times(double factor, const at::Tensor& tensor) {
  if (factor == 1.0) return tensor;
  return tensor.detach() + factor * (tensor - tensor.detach());
}

at::Tensor enter_core(const LayerInput& input, const LayerRules& rules, std::size_t part, const at::Tensor& projected) {
  constexpr std::array kNorms{"q_norm.weight", "k_norm.weight"};
  const auto normed = [&](const at::Tensor& heads) {
    return plain_norm(heads, input.parameters.at(kNorms[part]), input.config.qk_norm_eps);
  };
  const bool has_norm = part < kNorms.size();
  at::Tensor heads = projected;
  if (has_norm && rules.norm == NormRule::kBeforeRope) heads = normed(heads);
  if (rules.rope.has_value() && rules.turned[part]) heads = plain_turn(heads, *rules.rope);
  if (has_norm && rules.norm == NormRule::kAfterRope) heads = normed(heads);
  return with_gradient_times(rules.gradient_factor[part], heads);
}

/// (B or 1, 1, T_q, T_k): what masked_by and the padding leave.
at::Tensor visible_keys(const LayerInput& input, const LayerRules& rules) {
  const std::int64_t T_q = input.x.size(1), T_k = input.key_len();
  const at::Device device = input.x.device();
  AttentionConfig masked_by = rules.masked_by;
  if (rules.own_mask_inverted) masked_by.mask.reset();
  const at::Tensor real_keys = rules.padding == PaddingRule::kKeys ? input.real_keys : at::Tensor();
  at::Tensor visible = declared_mask(masked_by, T_q, T_k, real_keys, device);
  if (rules.own_mask_inverted) {
    AttentionConfig alone;
    alone.causal = false;
    alone.mask = rules.masked_by.mask;
    visible = visible.logical_and(declared_mask(alone, T_q, T_k, {}, device).logical_not());
  }
  if (rules.padding == PaddingRule::kQueries && input.real_keys.defined()) {
    visible = visible.logical_and(input.real_keys.view({-1, 1, T_k, 1}));
  }
  return visible;
}

/// What the mask rule makes of it.
at::Tensor applied(MaskRule rule, const at::Tensor& visible) {
  const auto diagonal = [&](std::int64_t offset) {
    return at::ones({visible.size(-2), visible.size(-1)}, visible.options()).tril(offset).triu(offset);
  };
  switch (rule) {
    case MaskRule::kDeclared:
      return visible;
    case MaskRule::kNone:
    case MaskRule::kAfterSoftmax:
      return at::ones_like(visible);
    case MaskRule::kNextToo:
      return visible.logical_or(diagonal(1));
    case MaskRule::kNotItself:
      return visible.logical_and(diagonal(0).logical_not());
    case MaskRule::kTransposed:
      return visible.transpose(-2, -1);
    case MaskRule::kInverted:
      return visible.logical_not();
  }
  throw std::logic_error("a mask without a rule");
}

/// softmax along another axis than the keys has no rows to look after.
at::Tensor softmax_along(std::int64_t axis, const at::Tensor& scores, const at::Tensor& mask, const at::Tensor& sinks) {
  if (axis == 3) return visible_softmax(scores, mask, sinks);
  return at::softmax(scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity()), axis);
}

at::Tensor weights_of(const LayerInput& input, const LayerRules& rules, const at::Tensor& q, const at::Tensor& k) {
  const at::Tensor visible = visible_keys(input, rules);
  const at::Tensor mask = applied(rules.mask, visible);
  const at::Tensor sinks = rules.sink ? input.parameters.at("sinks") : at::Tensor();
  if (rules.softcap_after_mask) {
    ScoreRules uncapped = rules.scores;
    uncapped.softcap.reset();
    const at::Tensor hidden = mask.logical_not();
    const at::Tensor masked =
        plain_scores(q, k, uncapped).masked_fill(hidden, -std::numeric_limits<double>::infinity());
    return visible_softmax(capped(masked, rules.scores.softcap.value()), {}, sinks);
  }
  at::Tensor weights = softmax_along(rules.softmax_axis, plain_scores(q, k, rules.scores), mask, sinks);
  if (rules.mask == MaskRule::kAfterSoftmax) weights = weights * visible;
  // A row that wrongly sees nothing has no right value, except where whole queries are taken for padding.
  if (rules.padding == PaddingRule::kQueries) return weights;
  const at::Tensor declared = visible_keys(input, rules_of(input.config));
  const at::Tensor wrongly_blind =
      mask.any(-1, /*keepdim=*/true).logical_not().logical_and(declared.any(-1, /*keepdim=*/true));
  if (!wrongly_blind.any().item<bool>()) return weights;
  return weights.masked_fill(wrongly_blind, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

LayerRules rules_of(const AttentionConfig& config) {
  LayerRules rules;
  rules.scores = score_rules(config);
  rules.sink = config.sink;
  rules.masked_by = config;
  rules.qkv = config.qkv;
  rules.norm = config.qk_norm ? NormRule::kBeforeRope : NormRule::kNone;
  rules.rope = config.rope;
  return rules;
}

PlainLayerOutput plain_layer(const LayerInput& input, const LayerRules& rules) {
  const PlainHeads heads = plain_projections(input, rules);
  PlainLayerOutput result;
  result.q = enter_core(input, rules, 0, heads[rules.parts[0]]);
  result.k = enter_core(input, rules, 1, heads[rules.parts[1]]);
  result.v = enter_core(input, rules, 2, heads[rules.parts[2]]);
  const std::int64_t H = input.config.H;
  const auto shared = [&](const at::Tensor& key_heads) {
    return rules.key_heads_tiled ? key_heads.repeat({1, H / key_heads.size(1), 1, 1}) : for_query_heads(key_heads, H);
  };
  result.weights = weights_of(input, rules, result.q, shared(result.k));
  result.context = at::matmul(result.weights, shared(result.v));
  const at::Tensor merged = plain_merge(result.context, rules);
  const char* name = input.config.qkv == QkvLayout::kFused ? "c_proj" : "o_proj";
  result.output = rules.output_projected ? plain_linear(input, name, merged, input.config.output_bias()) : merged;
  if (rules.input_added) result.output = result.output + input.x;
  return result;
}

std::map<std::string, at::Tensor> plain_layer_backward(const LayerInput& input, const LayerRules& rules,
                                                       const at::Tensor& d_output) {
  const at::AutoGradMode with_gradients(true);
  LayerInput leaves = input;
  std::vector<std::string> names;
  std::vector<at::Tensor> targets;
  const auto add_leaf = [&](const std::string& name, at::Tensor& value) {
    value = value.detach().requires_grad_(true);
    names.push_back(name);
    targets.push_back(value);
  };
  add_leaf("x", leaves.x);
  if (leaves.memory.defined()) add_leaf("memory", leaves.memory);
  for (auto& [name, value] : leaves.parameters) add_leaf(name, value);
  const std::vector<at::Tensor> found =
      torch::autograd::grad({plain_layer(leaves, rules).output}, targets, {d_output}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  std::map<std::string, at::Tensor> gradients;
  for (std::size_t index = 0; index < names.size(); ++index) gradients[names[index]] = found[index];
  return gradients;
}

}  // namespace attn
