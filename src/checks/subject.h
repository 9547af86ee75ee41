// What is being judged, as the checks see it. They never see a concrete module, so that the same checks can judge our
// layer, a planted fault, or later somebody else's. What a subject cannot give, it says by returning nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "attention/attention_input.h"
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

/// One call of a run in pieces: its output, and what the layer kept afterwards.
struct DecodedPiece {
  at::Tensor output;       ///< (B, n, d_model)
  std::int64_t keys = 0;   ///< keys that the cache holds.
  std::int64_t bytes = 0;  ///< of those keys and their values.
};

class Subject {
 public:
  virtual ~Subject() = default;

  /// The layer's config as declared: what it is judged by.
  virtual const AttentionConfig& config() const = 0;

  /// x (B, T, d_model) to output (B, T, d_model), any B and any T <= max_seq_len. The input has no cache.
  virtual at::Tensor forward(const AttentionInput& input) = 0;

  /// The same with every step; absent when the subject shows none.
  virtual std::optional<CapturedSteps> forward_with_steps(const AttentionInput& input) = 0;

  /// The same tokens in pieces of these lengths, which add up to T, with keys and values kept from call to call in one
  /// cache, which is emptied first and belongs to the subject: one that is not really empty shows in the next run.
  /// Absent when the subject keeps no keys and values.
  virtual std::optional<std::vector<DecodedPiece>> forward_in_pieces(const AttentionInput& input,
                                                                     const std::vector<std::int64_t>& lengths) = 0;

  /// The steps from scores to context of q (B, H, T_q, d_k), k and v (B, H_kv, T_k, d_k), as they enter the scores:
  /// normed and turned. `mask` (T_q, T_k) or (B or 1, 1, T_q, T_k), bool, true = may look; where none is given, the
  /// subject's own with the padding of `real_keys`. Absent when the core cannot be reached.
  virtual std::optional<CapturedSteps> attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                              const std::optional<at::Tensor>& mask = std::nullopt,
                                              const at::Tensor& real_keys = {}) = 0;

  virtual std::vector<std::pair<std::string, at::Tensor>> named_parameters() = 0;

  virtual void train(bool on) = 0;

  /// The same layer without its causal mask, window and mask of its own; padding still hides. Null when they cannot be
  /// taken off.
  virtual std::unique_ptr<Subject> without_masks() = 0;

  /// The same layer with another dropout probability; null when it cannot be changed.
  virtual std::unique_ptr<Subject> with_dropout(double dropout) = 0;

  /// The same layer, built once more from the same seed and weights, in this dtype; null when it cannot be rebuilt.
  virtual std::unique_ptr<Subject> rebuild(Dtype dtype) = 0;
};

}  // namespace attn
