// A config made real: the layer with its weights, the input, the device. Called by `trace` and `checks`.
// One seed gives one layer and one input on every dtype, device and platform.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "attention/attention_input.h"
#include "config/run_config.h"
#include "experiment/torch_version.h"

namespace attn {

class AttentionCore;
class AttentionObserver;
class InputEmbeddingImpl;
class MultiHeadAttentionImpl;

/// A layer and what goes into it, on the config's device, in its dtype.
struct Experiment {
  RunConfig config;
  std::shared_ptr<MultiHeadAttentionImpl> layer;  ///< single-head layers too; in eval mode.
  std::shared_ptr<InputEmbeddingImpl> embedding;  ///< null when x is given directly.
  std::optional<at::Tensor> tokens;               ///< (B, T) int64; only with an embedding.
  at::Tensor x;                                   ///< (B, T, d_model), detached; with an embedding: its result.
  at::Tensor memory;                              ///< (B, T_k, d_model); undefined unless the config has a memory.
  at::Tensor real_keys;  ///< (B, T_k) bool, false = padding; undefined unless the config has padding.
  std::vector<std::vector<std::string>> token_labels;  ///< B lists of T words; empty when the input has no words.
  std::vector<std::string> notes;  ///< what a user should be told: "weights: float16 converted to float32".

  /// x out of the tokens, its steps announced. There must be an embedding.
  at::Tensor embed(AttentionObserver* observer = nullptr) const;

  /// What the layer is given, with `layer_x` in the place of x (in a trace it is part of the autograd graph).
  AttentionInput input(const at::Tensor& layer_x) const { return {layer_x, memory, real_keys}; }
};

/// Throws ResourceError (device not there), IoError (files), ConfigError (weights that do not fit the layer, by name:
/// missing, left over, of another shape or dtype), ShapeError.
Experiment make_experiment(const RunConfig& config);

/// A layer of the config's kind, freshly drawn from the config's seed, on its device, in its dtype, in eval mode,
/// with the config's weights loaded. Every rebuild of a module goes through here.
std::shared_ptr<MultiHeadAttentionImpl> make_layer(const RunConfig& config,
                                                   std::shared_ptr<const AttentionCore> core = nullptr);

/// Constructs a layer of the config's sizes, and draws its parameters from LibTorch's generator.
using LayerMaker = std::function<std::shared_ptr<MultiHeadAttentionImpl>(const AttentionConfig&)>;

/// The same for a layer of another class.
std::shared_ptr<MultiHeadAttentionImpl> make_layer(const RunConfig& config, const LayerMaker& maker);

/// Throws ResourceError when the device is not there: "device cuda: this LibTorch has no CUDA, use cpu".
at::Device find_device(const RunConfig& config);

at::ScalarType scalar_type(Dtype dtype);

}  // namespace attn
