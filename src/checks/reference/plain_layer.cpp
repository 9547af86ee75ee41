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

/// (B, T_k): what the padding rule takes for tokens; undefined: every key.
at::Tensor keys_taken_for_tokens(const at::Tensor& real_keys, PaddingRule rule) {
  if (!real_keys.defined()) return {};
  switch (rule) {
    case PaddingRule::kKeys:
      return real_keys;
    case PaddingRule::kQueries:
    case PaddingRule::kIgnored:
      return {};
    case PaddingRule::kOfItemBefore:
      return real_keys.roll({1}, {0});
    case PaddingRule::kOtherSide:
      return real_keys.flip({1});
  }
  throw std::logic_error("padding without a rule");
}

/// (T, T)
at::Tensor causal_keys(CausalRule rule, const at::Tensor& all) {
  switch (rule) {
    case CausalRule::kUpToItself:
      return all.tril();
    case CausalRule::kNextToo:
      return all.tril(1);
    case CausalRule::kNotItself:
      return all.tril(-1);
    case CausalRule::kFromItself:
      return all.triu();
  }
  throw std::logic_error("a causal mask without a rule");
}

/// (B or 1, 1, T_q, T_k): what masked_by and the padding leave.
at::Tensor visible_keys(const LayerInput& input, const LayerRules& rules) {
  const std::int64_t T_q = input.x.size(1), T_k = input.key_len();
  const at::Device device = input.x.device();
  const bool other_causal = rules.causal != CausalRule::kUpToItself,
             other_own = rules.own_mask != OwnMaskRule::kDeclared;
  AttentionConfig masked_by = rules.masked_by;
  if (other_causal) masked_by.causal = false;
  if (other_own) masked_by.mask.reset();
  at::Tensor visible =
      declared_mask(masked_by, T_q, T_k, keys_taken_for_tokens(input.real_keys, rules.padding), device);
  if (other_causal) {
    visible = visible.logical_and(causal_keys(rules.causal, at::ones({T_q, T_k}, visible.options())));
  }
  if (other_own) {
    AttentionConfig alone;
    alone.causal = false;
    alone.mask = rules.masked_by.mask;
    const at::Tensor own = declared_mask(alone, T_q, T_k, {}, device);
    const bool inverted = rules.own_mask == OwnMaskRule::kInverted;
    visible = visible.logical_and(inverted ? own.logical_not() : own.transpose(-2, -1));
  }
  if (rules.padding == PaddingRule::kQueries && input.real_keys.defined()) {
    visible = visible.logical_and(input.real_keys.view({-1, 1, T_k, 1}));
  }
  return visible;
}

/// What the mask rule makes of it.
at::Tensor applied(MaskRule rule, const at::Tensor& visible) {
  switch (rule) {
    case MaskRule::kDeclared:
      return visible;
    case MaskRule::kNone:
    case MaskRule::kAfterSoftmax:
      return at::ones_like(visible);
    case MaskRule::kInverted:
      return visible.logical_not();
  }
  throw std::logic_error("a mask without a rule");
}

/// Along another axis than the keys there are no rows to look after; a key that no query sees has weights 0.
at::Tensor softmax_along(std::int64_t axis, const at::Tensor& scores, const at::Tensor& mask, const at::Tensor& sinks) {
  if (axis == 3) return visible_softmax(scores, mask, sinks);
  const at::Tensor masked = scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  return at::nan_to_num(at::softmax(masked, axis), 0.0);
}

at::Tensor weights_of(const LayerInput& input, const LayerRules& rules, const at::Tensor& mask,
                      const at::Tensor& visible, const at::Tensor& q, const at::Tensor& k) {
  const at::Tensor sinks = rules.sink ? input.parameters.at("sinks") : at::Tensor();
  if (rules.softcap_after_mask) {
    ScoreRules uncapped = rules.scores;
    uncapped.softcap.reset();
    const at::Tensor hidden = mask.logical_not();
    const at::Tensor masked =
        plain_scores(q, k, uncapped).masked_fill(hidden, -std::numeric_limits<double>::infinity());
    return visible_softmax(capped(masked, rules.scores.softcap.value()), {}, sinks);
  }
  const at::Tensor weights = softmax_along(rules.softmax_axis, plain_scores(q, k, rules.scores), mask, sinks);
  if (rules.mask == MaskRule::kAfterSoftmax) return weights * visible;
  if (rules.weights_rounded.has_value()) return weights.to(*rules.weights_rounded).to(weights.scalar_type());
  if (rules.empty_rows == EmptyRowRule::kZero) return weights;
  const double all_alike = 1.0 / static_cast<double>(k.size(-2));
  const bool nan = rules.empty_rows == EmptyRowRule::kNan;
  return weights.masked_fill(mask.any(-1, /*keepdim=*/true).logical_not(),
                             nan ? std::numeric_limits<double>::quiet_NaN() : all_alike);
}

}  // namespace

at::Tensor open_rows(const LayerInput& input, const at::Tensor& sees_some_key) {
  const at::Tensor should = visible_keys(input, rules_of(input.config)).any(-1);  // (B or 1, 1, T)
  const at::Tensor open = should.logical_and(sees_some_key.logical_not()).squeeze(1);
  return open.any().item<bool>() ? open : at::Tensor();
}

LayerInput in_double(const LayerInput& input) {
  LayerInput exact = input;
  exact.x = input.x.to(at::kDouble);
  if (input.memory.defined()) exact.memory = input.memory.to(at::kDouble);
  for (auto& [name, value] : exact.parameters) value = value.to(at::kDouble);
  return exact;
}

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
  PlainLayerOutput result;
  const PlainHeads heads = plain_qkv(input, rules);
  result.q = heads[0];
  result.k = heads[1];
  result.v = heads[2];
  const at::Tensor visible = visible_keys(input, rules);
  const at::Tensor mask = applied(rules.mask, visible);
  // Where whole queries are taken for padding, their rows are 0.
  if (rules.padding != PaddingRule::kQueries) result.open_rows = open_rows(input, mask.any(-1));
  const auto for_queries = [&](std::size_t which) {
    const at::Tensor& keys = heads[1 + which];
    const auto& change = rules.key_change[which];
    return change ? change(keys) : keys;
  };
  const std::int64_t H = input.config.H;
  const at::Tensor k = for_queries(0), v = for_queries(1);
  result.weights = weights_of(input, rules, mask, visible, result.q, k);
  result.context = rules.by_library
                       ? library_context(result.q, for_query_heads(k, H), for_query_heads(v, H), rules.scores, mask)
                       : product_of_groups(result.weights, v);
  result.output = plain_output(input, rules, result.context);
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
