// Faults that show from one run to the next.
#include <ATen/ATen.h>

#include <memory>

#include "checks/faults/fault.h"

namespace attn {
namespace {

struct Noise : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor context = AttentionCore::mix_values(weights, v);
    return context + 1e-6 * at::randn_like(context);
  }
};

/// Adds the largest number of the call before.
template <typename Layer>
struct StateKept : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override {
    const at::Tensor output = Layer::project_output(merged);
    const double remembered = last_;
    last_ = output.abs().max().template item<double>();
    return output + remembered;
  }
  double last_ = 0.0;
};

struct OtherWhenWatched : AttentionCore {
  AttentionCoreOutput attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionCoreOptions& options, AttentionObserver* observer) const override {
    AttentionCoreOutput output = AttentionCore::attend(q, k, v, options, observer);
    if (observer != nullptr) output.context = output.context * 1.01;
    return output;
  }
};

/// Every layer that it makes has other parameters.
LayerFactory other_layers() {
  const auto made = std::make_shared<std::uint64_t>(0);
  return [made](const RunConfig& run) {
    RunConfig other = run;
    other.seed += ++*made;
    return make_layer(other);
  };
}

std::string needs_drawn_weights(const RunConfig& run) {
  return run.weights.has_value() ? "the weights come from a file, not from the seed" : "";
}

}  // namespace

std::vector<FaultEntry> behaviour_faults() {
  const std::vector<std::string> seen{"determinism"};
  return {
      {{"noise-1e-6", "a millionth of noise is added to context", seen}, {needs_fine_numbers}, core_fault<Noise>()},
      {{"state-kept", "the largest output of the call before is added", seen},
       {needs_visible_key},
       layer_fault<StateKept>()},
      {{"watched-differs", "outputs change when the steps are watched", seen},
       {needs_visible_key},
       core_fault<OtherWhenWatched>()},
      {{"rebuilt-differently", "the same seed builds another layer", seen},
       {needs_drawn_weights, needs_visible_key},
       {other_layers}},
  };
}

}  // namespace attn
