// Faults of the backward pass alone: every output is right.
#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "checks/faults/fault.h"

namespace attn {
namespace {

using GradientChange = at::Tensor (*)(const at::Tensor&);

at::Tensor doubled(const at::Tensor& gradient) { return gradient * 2; }

at::Tensor zeroed(const at::Tensor& gradient) { return at::zeros_like(gradient); }

/// The last number alone becomes another one.
at::Tensor with_last(const at::Tensor& gradient, double value) {
  const at::Tensor changed = gradient.clone(at::MemoryFormat::Contiguous);
  changed.flatten()[-1] = value;
  return changed;
}

at::Tensor with_nan(const at::Tensor& gradient) { return with_last(gradient, std::nan("")); }

at::Tensor with_one_off(const at::Tensor& gradient) {
  return with_last(gradient, gradient.flatten()[-1].item<double>() + gradient.abs().max().item<double>() / 16 + 1e-3);
}

/// The same numbers; the gradient that comes back goes through `change`.
at::Tensor hooked(const at::Tensor& tensor, GradientChange change) {
  const at::Tensor passed = tensor * 1;
  if (passed.requires_grad()) passed.register_hook([change](const at::Tensor& gradient) { return change(gradient); });
  return passed;
}

struct DetachedQueries : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q.detach(), k);
  }
};

struct DetachedKeys : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q, k.detach());
  }
};

struct DetachedValues : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    return AttentionCore::mix_values(weights, v.detach());
  }
};

struct ChangedForQueries : AttentionCore {
  explicit ChangedForQueries(GradientChange changed) : change(changed) {}
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(hooked(q, change), k);
  }
  GradientChange change;
};

struct ChangedForValues : AttentionCore {
  explicit ChangedForValues(GradientChange changed) : change(changed) {}
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    return AttentionCore::mix_values(weights, hooked(v, change));
  }
  GradientChange change;
};

/// Base of the faults of one parameter, the output projection's weight.
template <typename Layer>
struct OtherOutputWeight : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override {
    return at::linear(merged, seen_by_autograd(this->output_layer_->weight), this->output_layer_->bias);
  }
  virtual at::Tensor seen_by_autograd(const at::Tensor& weight) const = 0;
};

template <typename Layer>
struct NanInOneGradient : OtherOutputWeight<Layer> {
  using OtherOutputWeight<Layer>::OtherOutputWeight;
  at::Tensor seen_by_autograd(const at::Tensor& weight) const override { return hooked(weight, with_nan); }
};

template <typename Layer>
struct ZeroGradient : OtherOutputWeight<Layer> {
  using OtherOutputWeight<Layer>::OtherOutputWeight;
  at::Tensor seen_by_autograd(const at::Tensor& weight) const override { return hooked(weight, zeroed); }
};

template <typename Layer>
struct DoubledGradient : OtherOutputWeight<Layer> {
  using OtherOutputWeight<Layer>::OtherOutputWeight;
  at::Tensor seen_by_autograd(const at::Tensor& weight) const override { return hooked(weight, doubled); }
};

template <typename Layer>
struct FrozenWeight : OtherOutputWeight<Layer> {
  using OtherOutputWeight<Layer>::OtherOutputWeight;
  at::Tensor seen_by_autograd(const at::Tensor& weight) const override { return weight.detach(); }
};

}  // namespace

std::vector<FaultEntry> gradient_faults() {
  const std::vector<std::string> seen_in_core{"sdpa-backward", "gradient", "reference-backward"};
  return {
      {{"gradient-detached-q", "no gradient reaches the queries", {"finite", "sdpa-backward"}},
       {},
       core_fault<DetachedQueries>()},
      {{"gradient-detached-k", "no gradient reaches the keys", {"finite", "sdpa-backward"}},
       {},
       core_fault<DetachedKeys>()},
      {{"gradient-detached-v", "no gradient reaches the values", {"finite", "sdpa-backward"}},
       {},
       core_fault<DetachedValues>()},
      {{"gradient-doubled", "the gradient of the values is doubled", seen_in_core},
       {needs_visible_key},
       core_fault<ChangedForValues>(doubled)},
      {{"gradient-zero", "the gradient of the queries is zero", seen_in_core},
       {needs_competing_keys, needs_slope},
       core_fault<ChangedForQueries>(zeroed)},
      {{"gradient-one-element-off", "the gradient of the last query's last channel is off", {"sdpa-backward"}},
       {},
       core_fault<ChangedForQueries>(with_one_off)},
      {{"gradient-nan-in-one-element", "one number of the output weight's gradient is NaN", {"finite"}},
       {},
       layer_fault<NanInOneGradient>()},
      {{"gradient-zero-of-output-weight", "the gradient of the output weight is zero", {"finite"}},
       {needs_visible_key},
       layer_fault<ZeroGradient>()},
      {{"gradient-doubled-of-output-weight",
        "the gradient of the output weight is doubled",
        {"gradient", "reference-backward"}},
       {needs_visible_key},
       layer_fault<DoubledGradient>()},
      {{"gradient-frozen-output-weight", "no gradient reaches the output weight", {"finite"}},
       {},
       layer_fault<FrozenWeight>()},
  };
}

}  // namespace attn
