#include "checks/plain_layer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

namespace attn {
namespace {

/// x W^T + b of the layer of this name.
at::Tensor linear(const LayerInput& input, const std::string& name, const at::Tensor& x) {
  const at::Tensor product = at::matmul(x, input.parameters.at(name + ".weight").t());
  return input.config.bias ? product + input.parameters.at(name + ".bias") : product;
}

using Three = std::array<at::Tensor, 3>;

Three thirds(const at::Tensor& qkv) {
  const std::int64_t width = qkv.size(-1) / 3;
  return {qkv.narrow(-1, 0, width), qkv.narrow(-1, width, width), qkv.narrow(-1, 2 * width, width)};
}

/// (B, T, H*width) to (B, H, T, width).
at::Tensor split(const at::Tensor& tokens, std::int64_t H, bool by_reshape) {
  const std::int64_t B = tokens.size(0), T = tokens.size(1), width = tokens.size(2) / H;
  if (by_reshape) return tokens.reshape({B, H, T, width});
  return tokens.reshape({B, T, H, width}).permute({0, 2, 1, 3});
}

/// q, k and v (B, H, T, d_k), in the order of the projections.
Three project(const LayerInput& input, const LayerRules& rules) {
  const std::int64_t H = input.config.H;
  const auto split_each = [&](const Three& wide) {
    return Three{split(wide[0], H, rules.split_by_reshape), split(wide[1], H, rules.split_by_reshape),
                 split(wide[2], H, rules.split_by_reshape)};
  };
  if (input.config.qkv == QkvLayout::kSeparate) {
    return split_each(
        {linear(input, "q_proj", input.x), linear(input, "k_proj", input.x), linear(input, "v_proj", input.x)});
  }
  const at::Tensor qkv = linear(input, input.config.qkv == QkvLayout::kFused ? "c_attn" : "qkv_proj", input.x);
  if (rules.qkv == QkvLayout::kFused) return split_each(thirds(qkv));
  return thirds(split(qkv, H, rules.split_by_reshape));
}

/// (T, T) bool, true = may look; absent: all of them.
std::optional<at::Tensor> visible_keys(MaskRule rule, const at::Tensor& scores) {
  const std::int64_t T = scores.size(-1);
  const at::Tensor position = at::arange(T, scores.options().dtype(at::kLong));
  const at::Tensor query = position.unsqueeze(1), key = position.unsqueeze(0);
  switch (rule) {
    case MaskRule::kNone:
    case MaskRule::kAfterSoftmax:
      return std::nullopt;
    case MaskRule::kCausal:
      return key.le(query);
    case MaskRule::kNextToo:
      return key.le(query + 1);
    case MaskRule::kNotItself:
      return key.lt(query);
    case MaskRule::kUpper:
      return key.ge(query);
    case MaskRule::kFutureOnly:
      return key.gt(query);
  }
  throw std::logic_error("a mask without a rule");
}

/// (B, H, T, d_k) to (B, T, H*d_k).
at::Tensor merge(const at::Tensor& context, const LayerRules& rules) {
  at::Tensor heads = context;
  if (rules.heads_reversed) heads = heads.flip({1});
  if (rules.heads_averaged) heads = heads.mean(1, /*keepdim=*/true).expand_as(heads);
  if (rules.head_left_out >= 0) {
    heads = heads.index_fill(1, at::tensor({rules.head_left_out}, at::kLong).to(heads.device()), 0.0);
  }
  const at::Tensor laid_out = rules.merge_by_reshape ? heads : heads.permute({0, 2, 1, 3});
  return laid_out.reshape({context.size(0), context.size(2), context.size(1) * context.size(3)});
}

/// The same numbers; of the gradient only this much goes back.
at::Tensor with_gradient_times(double factor, const at::Tensor& tensor) {
  if (factor == 1.0) return tensor;
  return tensor.detach() + factor * (tensor - tensor.detach());
}

}  // namespace

LayerRules rules_of(const AttentionConfig& config) {
  LayerRules rules;
  rules.scale = 1.0 / std::sqrt(static_cast<double>(config.d_k()));
  rules.mask = config.causal ? MaskRule::kCausal : MaskRule::kNone;
  rules.qkv = config.qkv;
  return rules;
}

PlainLayerOutput plain_layer(const LayerInput& input, const LayerRules& rules) {
  const Three heads = project(input, rules);
  PlainLayerOutput result;
  result.q = with_gradient_times(rules.gradient_factor[0], heads[rules.parts[0]]);
  result.k = with_gradient_times(rules.gradient_factor[1], heads[rules.parts[1]]);
  result.v = with_gradient_times(rules.gradient_factor[2], heads[rules.parts[2]]);
  at::Tensor scores = at::matmul(result.q, result.k.transpose(-2, -1)) * rules.scale;
  const std::optional<at::Tensor> visible = visible_keys(rules.mask, scores);
  if (visible.has_value()) {
    scores = scores.masked_fill(visible->logical_not(), -std::numeric_limits<double>::infinity());
  }
  result.weights = at::softmax(scores, rules.softmax_axis);
  if (rules.mask == MaskRule::kAfterSoftmax) {
    result.weights = result.weights * *visible_keys(MaskRule::kCausal, scores);
  }
  result.context = at::matmul(result.weights, result.v);
  const at::Tensor merged = merge(result.context, rules);
  const char* name = input.config.qkv == QkvLayout::kFused ? "c_proj" : "o_proj";
  result.output = rules.output_projected ? linear(input, name, merged) : merged;
  if (rules.input_added) result.output = result.output + input.x;
  return result;
}

std::map<std::string, at::Tensor> plain_layer_backward(const LayerInput& input, const LayerRules& rules,
                                                       const at::Tensor& d_output) {
  const at::AutoGradMode with_gradients(true);
  LayerInput leaves = input;
  std::vector<std::string> names{"x"};
  leaves.x = input.x.detach().requires_grad_(true);
  std::vector<at::Tensor> targets{leaves.x};
  for (auto& [name, value] : leaves.parameters) {
    value = value.detach().requires_grad_(true);
    names.push_back(name);
    targets.push_back(value);
  }
  const std::vector<at::Tensor> found =
      torch::autograd::grad({plain_layer(leaves, rules).output}, targets, {d_output}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  std::map<std::string, at::Tensor> gradients;
  for (std::size_t index = 0; index < names.size(); ++index) gradients[names[index]] = found[index];
  return gradients;
}

}  // namespace attn
