#include "checks/reference/plain_heads.h"

#include <ATen/ATen.h>

#include <vector>

#include "checks/reference/reference_rope.h"

namespace attn {
namespace {

/// (B, T, H*width) to (B, H, T, width).
at::Tensor split(const at::Tensor& tokens, std::int64_t H, bool by_reshape) {
  const std::int64_t B = tokens.size(0), T = tokens.size(1), width = tokens.size(2) / H;
  if (by_reshape) return tokens.reshape({B, H, T, width});
  return tokens.reshape({B, T, H, width}).permute({0, 2, 1, 3});
}

/// Slices of the last axis: one of `first`, two of `others`.
PlainHeads slices(const at::Tensor& wide, std::int64_t first, std::int64_t others) {
  return {wide.narrow(-1, 0, first), wide.narrow(-1, first, others), wide.narrow(-1, first + others, others)};
}

/// Key head by key head: the query heads that it serves, its key, its value.
PlainHeads read_per_head(const at::Tensor& qkv, const AttentionConfig& config, bool by_reshape) {
  const std::int64_t d_k = config.d_k(), key_heads = config.H_kv(), sharing = config.H / key_heads;
  const at::Tensor groups = split(qkv, key_heads, by_reshape);  // (B, H_kv, T, (sharing + 2)*d_k)
  PlainHeads heads = slices(groups, sharing * d_k, d_k);
  const std::int64_t B = groups.size(0), T = groups.size(2);
  heads[0] = heads[0].reshape({B, key_heads, T, sharing, d_k}).permute({0, 1, 3, 2, 4});
  heads[0] = heads[0].reshape({B, config.H, T, d_k});
  return heads;
}

/// At least float32, in the dtype of a wider input.
at::ScalarType wide_type(const at::Tensor& tensor) { return at::promote_types(tensor.scalar_type(), at::kFloat); }

/// x W^T, plus the bias where the layer of this name has one.
at::Tensor linear(const LayerInput& input, const std::string& name, const at::Tensor& x, bool bias) {
  const at::Tensor product = at::matmul(x, input.parameters.at(name + ".weight").t());
  return bias ? product + input.parameters.at(name + ".bias") : product;
}

/// q (B, H, T, d_k), k and v (B, H_kv, T_k, d_k), in the order of the projections.
PlainHeads projections(const LayerInput& input, const LayerRules& rules) {
  const AttentionConfig& config = input.config;
  const auto project = [&](const char* name, const at::Tensor& x) { return linear(input, name, x, config.bias); };
  const auto split_each = [&](const PlainHeads& wide) {
    return PlainHeads{split(wide[0], config.H, rules.split_by_reshape),
                      split(wide[1], config.H_kv(), rules.split_by_reshape),
                      split(wide[2], config.H_kv(), rules.split_by_reshape)};
  };
  if (config.qkv == QkvLayout::kSeparate) {
    const at::Tensor& of_keys = input.memory.defined() ? input.memory : input.x;
    return split_each({project("q_proj", input.x), project("k_proj", of_keys), project("v_proj", of_keys)});
  }
  const at::Tensor qkv = project(config.qkv == QkvLayout::kFused ? "c_attn" : "qkv_proj", input.x);
  if (rules.qkv == QkvLayout::kFusedPerHead) return read_per_head(qkv, config, rules.split_by_reshape);
  return split_each(slices(qkv, config.H * config.d_k(), config.H_kv() * config.d_k()));
}

/// x / sqrt(mean(x^2) + eps) in float32 at least, back in its dtype times weight.
at::Tensor normed(const at::Tensor& heads, const at::Tensor& weight, double eps, const LayerRules& rules) {
  const at::Tensor wide = heads.to(wide_type(heads));
  const std::vector<std::int64_t> axes =
      rules.norm_over_heads ? std::vector<std::int64_t>{1, -1} : std::vector<std::int64_t>{-1};
  const at::Tensor root = at::sqrt((wide * wide).mean(axes, /*keepdim=*/true) + eps);
  const at::Tensor result = (wide / (rules.norm_root_fixed ? root.detach() : root)).to(heads.scalar_type());
  return rules.norm_weighted ? result * weight : result;
}

/// Turned in float32 at least, back in its dtype.
at::Tensor turned(const at::Tensor& heads, const at::Tensor& positions, const LayerRules& rules) {
  const RopeConfig& rope = rules.rope.value();
  const std::int64_t d_k = heads.size(-1);
  const at::Tensor frequencies = at::tensor(reference_rope_frequencies(rope, d_k), at::kDouble);
  const at::Tensor places = positions.defined() ? positions : at::arange(heads.size(-2), at::kDouble);
  const at::Tensor angles = places.unsqueeze(1) * frequencies;  // (T, d_k/2)
  const double factor = reference_rope_factor(rope);
  const at::TensorOptions kind = heads.options().dtype(wide_type(heads));
  const auto table = [&](const at::Tensor& exact) {
    const at::Tensor fine = (exact * factor).to(kind);
    return rules.rope_table.has_value() ? fine.to(*rules.rope_table).to(kind) : fine;
  };
  const at::Tensor cos = table(angles.cos()), sin = table(angles.sin());
  std::vector<std::int64_t> first, second, back(static_cast<std::size_t>(d_k));
  for (std::int64_t c = 0; c < d_k / 2; ++c) {
    const ReferencePair pair = reference_rope_pair(rope.style, c, d_k);
    first.push_back(pair.first);
    second.push_back(pair.second);
    back[static_cast<std::size_t>(pair.first)] = c;
    back[static_cast<std::size_t>(pair.second)] = d_k / 2 + c;
  }
  const auto channels = [&](const at::Tensor& tensor, const std::vector<std::int64_t>& which) {
    return tensor.index_select(-1, at::tensor(which, at::kLong).to(heads.device()));
  };
  const at::Tensor wide = heads.to(kind);
  const at::Tensor a = channels(wide, first), b = channels(wide, second);
  return channels(at::cat({a * cos - b * sin, a * sin + b * cos}, -1), back).to(heads.scalar_type());
}

/// The same numbers; of the gradient only this much goes back.
at::Tensor with_gradient_times(double factor, const at::Tensor& tensor) {
  if (factor == 1.0) return tensor;
  return tensor.detach() + factor * (tensor - tensor.detach());
}

/// Projected heads as they enter the scores, or, v, the mixing.
at::Tensor enter_core(const LayerInput& input, const LayerRules& rules, std::size_t part, const at::Tensor& projected) {
  constexpr std::array kNorms{"q_norm.weight", "k_norm.weight"};
  const auto norm = [&](const at::Tensor& heads) {
    return normed(heads, input.parameters.at(kNorms[part]), input.config.qk_norm_eps, rules);
  };
  const bool has_norm = part < kNorms.size();
  at::Tensor heads = projected;
  if (has_norm && rules.norm == NormRule::kBeforeRope) heads = norm(heads);
  if (rules.rope.has_value() && rules.turned[part]) heads = turned(heads, rules.positions[part], rules);
  if (has_norm && rules.norm == NormRule::kAfterRope) heads = norm(heads);
  return with_gradient_times(rules.gradient_factor[part], heads);
}

/// (B, H, T, d_k) to (B, T, H*d_k).
at::Tensor merged(const at::Tensor& context, const LayerRules& rules) {
  at::Tensor heads = context;
  if (rules.heads_reversed) heads = heads.flip({1});
  if (rules.heads_averaged) heads = heads.mean(1, /*keepdim=*/true).expand_as(heads);
  if (rules.head_left_out >= 0) {
    heads = heads.index_fill(1, at::tensor({rules.head_left_out}, at::kLong).to(heads.device()), 0.0);
  }
  const at::Tensor laid_out = rules.merge_by_reshape ? heads : heads.permute({0, 2, 1, 3});
  return laid_out.reshape({context.size(0), context.size(2), context.size(1) * context.size(3)});
}

}  // namespace

PlainHeads plain_qkv(const LayerInput& input, const LayerRules& rules) {
  const PlainHeads heads = projections(input, rules);
  return {enter_core(input, rules, 0, heads[rules.parts[0]]), enter_core(input, rules, 1, heads[rules.parts[1]]),
          enter_core(input, rules, 2, heads[rules.parts[2]])};
}

at::Tensor plain_output(const LayerInput& input, const LayerRules& rules, const at::Tensor& context) {
  const char* name = input.config.qkv == QkvLayout::kFused ? "c_proj" : "o_proj";
  at::Tensor output = merged(context, rules);
  if (rules.output_projected) output = linear(input, name, output, input.config.output_bias());
  return rules.input_added ? output + input.x : output;
}

}  // namespace attn
