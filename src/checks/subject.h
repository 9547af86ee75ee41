// What is being judged, as the checks see it. They never see a concrete module, so that the same checks can judge our
// layer, a planted fault, or later somebody else's. What a subject cannot give, it says by returning nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "attention/steps.h"
#include "config/run_config.h"

namespace attn {

/// Tensors of one run by step.
struct CapturedSteps {
  /// Single-head tensors come with an H axis of 1 here, so that checks see one shape only.
  std::map<Step, at::Tensor> values;
  /// The very tensors that were announced, in order: their own shapes, and still part of the autograd graph.
  std::vector<std::pair<Step, at::Tensor>> announced;
  at::Tensor output;  ///< (B, T, d_model); of attend(): the context.
};

class Subject {
 public:
  virtual ~Subject() = default;

  /// The layer's config as declared: what it is judged by.
  virtual const AttentionConfig& config() const = 0;

  /// x (B, T, d_model) to output (B, T, d_model), any B and any T <= max_seq_len.
  virtual at::Tensor forward(const at::Tensor& x) = 0;

  /// The same with every step; absent when the subject shows none.
  virtual std::optional<CapturedSteps> forward_with_steps(const at::Tensor& x) = 0;

  /// The steps from scores to context of q, k, v (B, H, T, d_k) under `mask` (T, T; bool, true = may look), or under
  /// the subject's own where none is given; absent when the core cannot be reached.
  virtual std::optional<CapturedSteps> attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                              const std::optional<at::Tensor>& mask = std::nullopt) = 0;

  virtual std::vector<std::pair<std::string, at::Tensor>> named_parameters() = 0;

  virtual void train(bool on) = 0;

  /// The same layer with its mask switched off or on; null when there is no such switch.
  virtual std::unique_ptr<Subject> with_mask(bool causal) = 0;

  /// The same layer with another dropout probability; null when it cannot be changed.
  virtual std::unique_ptr<Subject> with_dropout(double dropout) = 0;

  /// The same layer, built once more from the same seed and weights, in this dtype; null when it cannot be rebuilt.
  virtual std::unique_ptr<Subject> rebuild(Dtype dtype) = 0;
};

}  // namespace attn
