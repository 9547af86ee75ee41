// A whole layer in the plainest LibTorch calls: matmul, masked fill, softmax, matmul, with its own reading of the qkv
// layouts, never attention/'s. The limits of reference_checks.cpp are built on its rounding. Its rules can be changed
// one at a time, which is how diagnosis.cpp tries the known mistakes.
#pragma once

#include <array>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "config/attention_config.h"

namespace attn {

/// What a layer is made of. Parameters by name, as stored; all tensors of one dtype and device.
struct LayerInput {
  AttentionConfig config;
  at::Tensor x;  ///< (B, T, d_model)
  std::map<std::string, at::Tensor> parameters;
};

/// Which key j query i may look at.
enum class MaskRule {
  kNone,          ///< any
  kCausal,        ///< j <= i
  kNextToo,       ///< j <= i + 1
  kNotItself,     ///< j < i
  kUpper,         ///< j >= i
  kFutureOnly,    ///< j > i
  kAfterSoftmax,  ///< j <= i, but multiplied into the weights of all keys; rows are not normalised again.
};

/// How the layer is computed. What is not set is done right.
struct LayerRules {
  double scale = 1.0;  ///< of the raw scores; rules_of() sets 1/sqrt(d_k).
  MaskRule mask = MaskRule::kCausal;
  std::int64_t softmax_axis = 3;              ///< of (B, H, T_q, T_k)
  QkvLayout qkv = QkvLayout::kFused;          ///< how a fused projection is read.
  std::array<std::size_t, 3> parts{0, 1, 2};  ///< which projection is taken as q, k and v.
  bool split_by_reshape = false;              ///< (B, T, H*d_k) taken as (B, H, T, d_k) as it lies in memory.
  bool merge_by_reshape = false;              ///< the same back.
  bool heads_reversed = false;                ///< merged in the order H-1 ... 0.
  bool heads_averaged = false;                ///< each replaced by the mean of all.
  std::int64_t head_left_out = -1;            ///< its context is 0; -1: none.
  bool output_projected = true;
  bool input_added = false;                           ///< output + x.
  std::array<double, 3> gradient_factor{1., 1., 1.};  ///< of what comes back to q, k and v; 0: cut off.
};

/// What the config says.
LayerRules rules_of(const AttentionConfig& config);

struct PlainLayerOutput {
  at::Tensor q, k, v;  ///< (B, H, T, d_k)
  at::Tensor weights;  ///< (B, H, T, T); a row that sees no key is NaN.
  at::Tensor context;  ///< (B, H, T, d_k)
  at::Tensor output;   ///< (B, T, d_model)
};

/// In the dtype of the input, part of the autograd graph of its tensors. Throws std::out_of_range when a parameter is
/// missing.
PlainLayerOutput plain_layer(const LayerInput& input, const LayerRules& rules);

/// Gradients of sum(output * d_output) at x and at every parameter: "x" and the parameters' names.
std::map<std::string, at::Tensor> plain_layer_backward(const LayerInput& input, const LayerRules& rules,
                                                       const at::Tensor& d_output);

}  // namespace attn
