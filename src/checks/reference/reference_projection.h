// The projections of the independent judge, in plain loops over double, forward and backward: its own reading of how
// each qkv layout stores them. Private to reference_layer.cpp. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checks/reference/reference_layer.h"

namespace attn {

enum class ReferencePart { kQuery, kKey, kValue };

/// The linear layer that makes q, k or v: "c_attn".
std::string reference_projection_name(QkvLayout layout, ReferencePart part);
std::string reference_output_name(QkvLayout layout);

/// q (B, H, tokens, d_k), or k or v (B, H_kv, tokens, d_k), of these tokens of x, or of the memory.
std::vector<double> reference_project(const ReferenceLayerInput& input, ReferencePart part,
                                      const std::vector<std::int64_t>& tokens);

/// Adds what the gradient of q, k or v of these tokens makes at the weight, the bias, and x or the memory.
void reference_project_backward(const ReferenceLayerInput& input, ReferencePart part,
                                const std::vector<std::int64_t>& tokens, const std::vector<double>& d_heads,
                                ReferenceLayerGradients& gradients);

/// (B, R, d_model): output channel o of a row is the sum over heads and channels of weight[o, h*d_k + c] *
/// context[h, c], where context is (B, H, R, d_k).
std::vector<double> reference_project_output(const ReferenceLayerInput& input, const std::vector<double>& context,
                                             std::int64_t R);

/// The gradient of context (B, H, R, d_k); adds those of weight and bias.
std::vector<double> reference_project_output_backward(const ReferenceLayerInput& input,
                                                      const std::vector<double>& context, std::int64_t R,
                                                      const std::vector<double>& d_output,
                                                      ReferenceLayerGradients& gradients);

}  // namespace attn
