// What a user can see of a layer, so that a fault that claims to change nothing can be held to it.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "checks/check_test_support.h"
#include "checks/planted_faults.h"

namespace attn {

/// Two runs token by token, the cache emptied between them. Nothing where a layer cannot run in pieces.
inline std::vector<at::Tensor> pieces_of(MultiHeadAttentionImpl& layer, const RunConfig& run,
                                         const AttentionInput& input) {
  std::vector<at::Tensor> outputs;
  if (!run.attention.causal || input.memory.defined() || run.T == 1) return outputs;
  const at::NoGradGuard no_gradients;
  const std::unique_ptr<KeyValueCache> cache = layer.make_cache();
  for (int round = 0; round < 2; ++round) {
    cache->reset();
    for (std::int64_t t = 0; t < run.T; ++t) {
      AttentionInput token{input.x.narrow(1, t, 1)};
      if (input.real_keys.defined()) token.real_keys = input.real_keys.narrow(1, t, 1);
      token.cache = cache.get();
      outputs.push_back(layer.forward(token).output);
    }
  }
  return outputs;
}

/// Output in eval and in training, gradients of x and parameters, and the outputs of a run in pieces.
inline std::vector<at::Tensor> everything_of(const RunConfig& run, const LayerFactory& factory) {
  const std::shared_ptr<MultiHeadAttentionImpl> layer = factory(run);
  AttentionInput input = whole_input_of(run);
  std::vector<at::Tensor> seen = pieces_of(*layer, run, input);
  input.x.requires_grad_(true);
  const at::Tensor output = layer->forward(input).output;
  output.sum().backward();
  seen.push_back(output.detach());
  const auto add_gradient = [&](const at::Tensor& of) {
    seen.push_back(of.grad().defined() ? of.grad() : at::zeros_like(of));
  };
  add_gradient(input.x);
  for (const at::Tensor& parameter : layer->parameters()) add_gradient(parameter);
  layer->train();
  torch::manual_seed(3);
  const at::NoGradGuard no_gradients;
  seen.push_back(layer->forward(input).output);
  return seen;
}

/// Whether the reason says that such a layer cannot be, or that nothing larger than rounding changes: then there is
/// nothing to compare.
inline bool cannot_be_compared(const std::string& fault, const std::string& reason, const RunConfig& run) {
  static const std::set<std::string> other_reason{
      "output-projection-forgotten", "output-weight-transposed", "fused-thirds-per-head", "per-head-as-thirds",
      "noise-1e-6", "future-mixed-in-1e-6", "first-token-rounded", "softcap-after-mask",
      // A score of a query with itself is rounded otherwise, which shows beside a sink.
      "qk-swapped", "rope-forgotten", "rope-other-pairing", "rope-theta-10000", "rope-scaling-forgotten",
      "rope-before-norm", "rope-offset-forgotten"};
  if (other_reason.contains(fault)) return true;
  // What is alike may be summed in another order, and dropout makes it unlike in training.
  for (const char* words : {"the layer has no head axis", "engine is sdpa", "a memory", "would not fit",
                            "all heads are alike", "the same key alone"}) {
    if (reason.find(words) != std::string::npos) return true;
  }
  return run.attention.module == ModuleKind::kSingleHead && reason == "H is 1";
}

/// Every fault of the list that does not apply here must leave every bit where it is. Returns how many were tried.
inline std::size_t expect_no_effect_of_what_does_not_apply(const RunConfig& run, const std::string& description) {
  const std::vector<at::Tensor> honest = everything_of(run, [](const RunConfig& config) { return make_layer(config); });
  std::size_t tried = 0;
  for (const FaultInfo& fault : fault_list()) {
    const std::optional<std::string> reason = why_not_applicable(fault.name, run);
    if (!reason.has_value() || cannot_be_compared(fault.name, *reason, run)) continue;
    const std::vector<at::Tensor> faulty = everything_of(run, planted(fault.name));
    EXPECT_EQ(faulty.size(), honest.size()) << fault.name;
    for (std::size_t index = 0; index < std::min(honest.size(), faulty.size()); ++index) {
      EXPECT_TRUE(at::equal(faulty[index], honest[index]))
          << fault.name << " (" << *reason << "), tensor " << index << " of " << description;
    }
    ++tried;
  }
  return tried;
}

}  // namespace attn
