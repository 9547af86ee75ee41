// Faults planted on purpose, each a subclass that overrides one step, to prove that every alarm rings.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "attention/attention_core.h"
#include "attention/multi_head_attention.h"
#include "checks/layer_subject.h"
#include "checks/number_format.h"
#include "experiment/experiment.h"

namespace attn {

/// Layers with a faulty core.
template <typename Core, typename... Arguments>
LayerFactory core_fault(Arguments... arguments) {
  return [=](const RunConfig& run) { return make_layer(run, std::make_shared<const Core>(arguments...)); };
}

/// Layers of a faulty subclass.
template <typename Layer>
LayerFactory layer_fault() {
  return [](const RunConfig& run) {
    torch::manual_seed(run.seed);
    auto layer = std::make_shared<Layer>(run.attention);
    layer->to(find_device(run), scalar_type(run.dtype));
    layer->eval();
    return layer;
  };
}

// ---- cores ----

struct OtherScale : AttentionCore {
  explicit OtherScale(double other) : other_scale(other) {}
  at::Tensor scale_scores(const at::Tensor& scores, double) const override { return scores * other_scale; }
  double other_scale;
};

/// Announces twice the scaled scores and takes it back in the next step: nothing but `scale` can see it.
struct ScaleAnnouncedTwice : AttentionCore {
  at::Tensor scale_scores(const at::Tensor& scores, double scale) const override { return scores * (2 * scale); }
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    return AttentionCore::mask_scores(scaled / 2, mask);
  }
};

struct ScoresOfOtherTokens : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q, k).roll({1}, {-1});
  }
};

struct SoftmaxOverQueries : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>&) const override {
    return at::softmax(masked, -2);
  }
};

struct SoftmaxOverHeads : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>&) const override {
    return at::nan_to_num(at::softmax(masked, 1), 0.0);
  }
};

/// Weights twice as large, halved where they are used.
struct WeightsAnnouncedTwice : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask) const override {
    return AttentionCore::normalize_scores(masked, mask) * 2;
  }
  at::Tensor drop_weights(const at::Tensor& weights, double dropout) const override {
    return AttentionCore::drop_weights(weights / 2, dropout);
  }
};

struct NoMask : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>&) const override {
    return scaled * 1;
  }
};

struct MaskShiftedByOne : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    if (!mask.has_value()) return scaled * 1;
    return AttentionCore::mask_scores(scaled, at::ones_like(*mask).tril(1));
  }
};

struct OneLeakedPair : AttentionCore {
  OneLeakedPair(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) : batch(b), head(h), query(i), key(j) {}
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    if (!mask.has_value() || scaled.size(0) <= batch || scaled.size(-1) <= key)
      return AttentionCore::mask_scores(scaled, mask);
    const at::Tensor changed = mask->expand_as(scaled).clone();
    changed[batch][head][query][key] = true;
    return AttentionCore::mask_scores(scaled, changed);
  }
  std::int64_t batch, head, query, key;
};

struct HidesAVisibleKey : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    const at::Tensor masked = AttentionCore::mask_scores(scaled, mask);
    const at::Tensor hidden = at::zeros_like(masked, at::kBool);
    hidden.select(-1, 2).select(-1, 5).fill_(true);  // query 5, key 2
    return masked.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
};

struct FiniteFill : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    return mask.has_value() ? scaled.masked_fill(mask->logical_not(), -50.0) : scaled * 1;
  }
};

/// Causal whatever it is told: switching the mask off does nothing.
struct MaskBuiltIn : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>&) const override {
    const at::Tensor own = at::ones({scaled.size(-2), scaled.size(-1)}, at::kBool).tril();
    return AttentionCore::mask_scores(scaled, own);
  }
};

/// The first token's context is off by one rounding.
struct FirstTokenOffByARounding : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor factor = at::ones({v.size(-2), 1}, v.options());
    factor[0][0] = 1.0 + 2 * epsilon_of(v.scalar_type());
    return AttentionCore::mix_values(weights, v) * factor;
  }
};

/// Context slightly too large from the second token on; the gradient does not know of it.
struct ContextSlightlyOff : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor context = AttentionCore::mix_values(weights, v);
    const at::Tensor off = context.detach() * 1e-4;
    off.select(-2, 0).zero_();
    return context + off;
  }
};

/// Passes the gradient of q on through a function.
struct GradientOfQueries : AttentionCore {
  explicit GradientOfQueries(std::function<at::Tensor(at::Tensor)> change) : changed(std::move(change)) {}
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    const at::Tensor hooked = q * 1;
    if (hooked.requires_grad()) hooked.register_hook(changed);
    return AttentionCore::compute_scores(hooked, k);
  }
  std::function<at::Tensor(at::Tensor)> changed;
};

struct DetachedQueries : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q.detach(), k);
  }
};

struct DropoutInEval : AttentionCore {
  at::Tensor drop_weights(const at::Tensor& weights, double) const override { return at::dropout(weights, 0.2, true); }
};

struct SurvivorsNotScaled : AttentionCore {
  at::Tensor drop_weights(const at::Tensor& weights, double dropout) const override {
    return AttentionCore::drop_weights(weights, dropout) * (1 - dropout);
  }
};

struct HalfTheDropout : AttentionCore {
  at::Tensor drop_weights(const at::Tensor& weights, double dropout) const override {
    return AttentionCore::drop_weights(weights, dropout / 2);
  }
};

struct RandomNoise : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor context = AttentionCore::mix_values(weights, v);
    return context + 1e-6 * at::randn_like(context);
  }
};

struct NanWeights : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask) const override {
    const at::Tensor weights = AttentionCore::normalize_scores(masked, mask).clone();
    weights.flatten()[0] = std::nan("");
    return weights;
  }
};

struct Throws : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return at::matmul(q, k.narrow(-1, 0, 1));
  }
};

// ---- layers ----

struct HeadAxisLeft : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor merge_context(const at::Tensor& context) override {
    return MultiHeadAttentionImpl::merge_context(context).unsqueeze(2);
  }
  at::Tensor project_output(const at::Tensor& merged) override {
    return MultiHeadAttentionImpl::project_output(merged.squeeze(2));
  }
};

struct OutputOfAnotherShape : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    return MultiHeadAttentionImpl::project_output(merged).transpose(0, 1);
  }
};

struct NanInOneGradient : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    const at::Tensor weight = output_layer_->weight * 1;
    if (weight.requires_grad()) {
      weight.register_hook([](at::Tensor gradient) {
        gradient = gradient.clone();
        gradient[2][3] = std::nan("");
        return gradient;
      });
    }
    return at::linear(merged, weight, output_layer_->bias);
  }
};

struct ZeroGradientOfOneWeight : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    const at::Tensor weight = output_layer_->weight;
    return at::linear(merged, weight.detach() + 0 * weight, output_layer_->bias);
  }
};

struct FrozenOutputWeight : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    return at::linear(merged, output_layer_->weight.detach(), output_layer_->bias);
  }
};

/// The mean of all tokens, future ones included, comes in at 1e-6.
struct FutureMixedIn : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    return MultiHeadAttentionImpl::project_output(merged) + 1e-6 * merged.narrow(2, 0, 1).mean(1, true);
  }
};

/// Averages over blocks of four tokens: changing tokens from a block's border on shows nothing.
struct BlockAverage : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    const at::Tensor output = MultiHeadAttentionImpl::project_output(merged).clone();
    for (std::int64_t first = 0; first + 4 <= output.size(1); first += 4) {
      const at::Tensor block = output.narrow(1, first, 4);
      block.copy_(block + block.mean(1, true));
    }
    return output;
  }
};

/// The output ignores its input (0 or -0).
struct OutputAllZero : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    return MultiHeadAttentionImpl::project_output(merged) * 0;
  }
};

struct RemembersTheLastCall : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    const at::Tensor output = MultiHeadAttentionImpl::project_output(merged);
    const double remembered = last_;
    last_ = output.mean().item<double>();
    return output + remembered;
  }
  double last_ = 0.0;
};

}  // namespace attn
