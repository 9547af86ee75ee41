// The independent judge of a whole layer: projections, norm, rotation, attention, output projection in plain loops over
// double, forward and backward. It shares nothing with `attention/`: its own reading of the three qkv layouts, its own
// heads, its own mask. Slow, never optimised. No LibTorch. The parts: reference_projection.h, reference_norm.h,
// reference_rope.h, reference_attention.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/attention_config.h"

namespace attn {

/// What a parameter is called and its shape as stored: "c_attn.weight", {(H + 2 * H_kv) * d_k, d_model}.
struct ParameterShape {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Every parameter that a layer of this config has.
std::vector<ParameterShape> reference_parameters(const AttentionConfig& config);

/// Vectors are row-major; parameters by name, each in the layout in which it is stored.
struct ReferenceLayerInput {
  AttentionConfig config;  ///< Its dropout is not applied.
  std::int64_t B = 0, T = 0;
  std::int64_t T_k = 0;            ///< tokens of the memory; 0: there is none.
  std::vector<double> x;           ///< (B, T, d_model)
  std::vector<double> memory;      ///< (B, T_k, d_model): keys and values come from it; empty: from x.
  std::vector<bool> real_keys;     ///< (B, T) or (B, T_k), false = padding, which no query sees; empty: no padding.
  std::vector<std::int64_t> rows;  ///< the query rows that are worked out, ascending: R of them. Empty: all T.
  std::map<std::string, std::vector<double>> parameters;

  std::int64_t keys() const { return T_k == 0 ? T : T_k; }
};

/// K = T, or T_k with a memory.
struct ReferenceLayerOutput {
  std::vector<double> projected_q, projected_k;  ///< as q and k, before norm and rotation.
  std::vector<double> q;                         ///< (B, H, R, d_k)
  std::vector<double> k, v;                      ///< (B, H_kv, K, d_k)
  std::vector<double> weights;                   ///< (B, H, R, K)
  std::vector<double> context;                   ///< (B, H, R, d_k)
  std::vector<double> output;                    ///< (B, R, d_model)
};

struct ReferenceLayerGradients {
  std::vector<double> x;                                  ///< (B, T, d_model)
  std::vector<double> memory;                             ///< (B, T_k, d_model); empty without one.
  std::map<std::string, std::vector<double>> parameters;  ///< the shape of each parameter.
};

/// Throws std::out_of_range when a parameter is missing.
ReferenceLayerOutput reference_layer(const ReferenceLayerInput& input);

/// Gradients of sum(output * d_output), written out by hand. `forward` is what reference_layer() gave for `input`.
/// d_output: (B, R, d_model); rows that are not worked out count as if their d_output were 0.
ReferenceLayerGradients reference_layer_backward(const ReferenceLayerInput& input, const ReferenceLayerOutput& forward,
                                                 const std::vector<double>& d_output);

/// Multiply-adds of a forward and a backward pass of R rows of each of B items against `keys` keys, about a nanosecond
/// each; what softmax costs a pair of query and key is counted as so many of them.
double reference_layer_cost(const AttentionConfig& config, std::int64_t B, std::int64_t keys, std::int64_t R);

}  // namespace attn
