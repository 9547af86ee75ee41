#include "checks/reference/reference_layer.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "checks/reference/reference_attention.h"
#include "checks/reference/reference_norm.h"
#include "checks/reference/reference_projection.h"
#include "checks/reference/reference_rope.h"

namespace attn {
namespace {

std::vector<double> zeros(std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 0.0); }

std::vector<std::int64_t> every_token(std::int64_t count) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), std::int64_t{0});
  return tokens;
}

/// The tokens whose queries are worked out.
std::vector<std::int64_t> query_rows(const ReferenceLayerInput& input) {
  return input.rows.empty() ? every_token(input.T) : input.rows;
}

/// Norm, then rotation: what the core is given of q or k.
std::vector<double> enter_core(const ReferenceLayerInput& input, const char* norm_weight,
                               const std::vector<double>& projected, const std::vector<std::int64_t>& positions) {
  const AttentionConfig& config = input.config;
  std::vector<double> heads = projected;
  if (config.qk_norm) heads = reference_norm(heads, input.parameters.at(norm_weight), config.qk_norm_eps);
  if (config.rope.has_value()) heads = reference_rope(*config.rope, config.d_k(), heads, positions);
  return heads;
}

/// The gradient of what was projected.
std::vector<double> enter_core_backward(const ReferenceLayerInput& input, const char* norm_weight,
                                        const std::vector<double>& projected,
                                        const std::vector<std::int64_t>& positions, std::vector<double> d_heads,
                                        ReferenceLayerGradients& gradients) {
  const AttentionConfig& config = input.config;
  if (config.rope.has_value()) d_heads = reference_rope_backward(*config.rope, config.d_k(), d_heads, positions);
  if (config.qk_norm) {
    d_heads = reference_norm_backward(projected, input.parameters.at(norm_weight), config.qk_norm_eps, d_heads,
                                      gradients.parameters.at(norm_weight));
  }
  return d_heads;
}

constexpr const char* kQueryNorm = "q_norm.weight";
constexpr const char* kKeyNorm = "k_norm.weight";
constexpr const char* kSinks = "sinks";

/// Sizes, mask and sinks; q, k and v are for the caller to fill in.
ReferenceCoreInput core_of(const ReferenceLayerInput& input, const std::vector<std::int64_t>& rows) {
  ReferenceCoreInput core;
  core.config = input.config;
  core.B = input.B;
  core.T_q = static_cast<std::int64_t>(rows.size());
  core.T_k = input.keys();
  core.real_keys = input.real_keys;
  core.positions = rows;
  if (input.config.sink) core.sinks = input.parameters.at(kSinks);
  return core;
}

}  // namespace

std::vector<ParameterShape> reference_parameters(const AttentionConfig& config) {
  const std::int64_t of_queries = config.H * config.d_k(), of_keys = config.H_kv() * config.d_k();
  std::vector<ParameterShape> parameters;
  const auto add_layer = [&](const std::string& name, std::int64_t from, std::int64_t to, bool bias) {
    parameters.push_back({name + ".weight", {to, from}});
    if (bias) parameters.push_back({name + ".bias", {to}});
  };
  const auto add_projection = [&](ReferencePart part, std::int64_t to) {
    add_layer(reference_projection_name(config.qkv, part), config.d_model, to, config.bias);
  };
  if (config.qkv == QkvLayout::kSeparate) {
    add_projection(ReferencePart::kQuery, of_queries);
    add_projection(ReferencePart::kKey, of_keys);
    add_projection(ReferencePart::kValue, of_keys);
  } else {
    add_projection(ReferencePart::kQuery, of_queries + 2 * of_keys);
  }
  add_layer(reference_output_name(config.qkv), of_queries, config.d_model, config.output_bias());
  if (config.qk_norm) {
    parameters.push_back({kQueryNorm, {config.d_k()}});
    parameters.push_back({kKeyNorm, {config.d_k()}});
  }
  if (config.sink) parameters.push_back({kSinks, {config.H}});
  return parameters;
}

ReferenceLayerOutput reference_layer(const ReferenceLayerInput& input) {
  const std::vector<std::int64_t> rows = query_rows(input), keys = every_token(input.keys());
  ReferenceLayerOutput output;
  output.projected_q = reference_project(input, ReferencePart::kQuery, rows);
  output.projected_k = reference_project(input, ReferencePart::kKey, keys);
  ReferenceCoreInput core = core_of(input, rows);
  core.q = enter_core(input, kQueryNorm, output.projected_q, rows);
  core.k = enter_core(input, kKeyNorm, output.projected_k, keys);
  core.v = reference_project(input, ReferencePart::kValue, keys);
  ReferenceCoreOutput attended = reference_core(core);
  output.output = reference_project_output(input, attended.context, core.T_q);
  output.q = std::move(core.q);
  output.k = std::move(core.k);
  output.v = std::move(core.v);
  output.weights = std::move(attended.weights);
  output.context = std::move(attended.context);
  return output;
}

ReferenceLayerGradients reference_layer_backward(const ReferenceLayerInput& input, const ReferenceLayerOutput& forward,
                                                 const std::vector<double>& d_output) {
  const std::vector<std::int64_t> rows = query_rows(input), keys = every_token(input.keys());
  ReferenceLayerGradients gradients;
  gradients.x = zeros(input.B * input.T * input.config.d_model);
  gradients.memory = zeros(input.B * input.T_k * input.config.d_model);
  for (const ParameterShape& parameter : reference_parameters(input.config)) {
    gradients.parameters[parameter.name].assign(input.parameters.at(parameter.name).size(), 0.0);
  }
  ReferenceCoreInput core = core_of(input, rows);
  core.q = forward.q;
  core.k = forward.k;
  core.v = forward.v;
  const std::vector<double> d_context =
      reference_project_output_backward(input, forward.context, core.T_q, d_output, gradients);
  ReferenceCoreGradients d_core = reference_core_backward(core, d_context);
  if (input.config.sink) gradients.parameters.at(kSinks) = d_core.dsinks;
  const std::vector<double> dq =
      enter_core_backward(input, kQueryNorm, forward.projected_q, rows, std::move(d_core.dq), gradients);
  const std::vector<double> dk =
      enter_core_backward(input, kKeyNorm, forward.projected_k, keys, std::move(d_core.dk), gradients);
  reference_project_backward(input, ReferencePart::kQuery, rows, dq, gradients);
  reference_project_backward(input, ReferencePart::kKey, keys, dk, gradients);
  reference_project_backward(input, ReferencePart::kValue, keys, d_core.dv, gradients);
  return gradients;
}

double reference_layer_cost(const AttentionConfig& config, std::int64_t B, std::int64_t keys, std::int64_t R) {
  constexpr double kSoftmaxOfAPair = 50.0;  // exp, division, and walking through four (R, K) arrays, twice
  constexpr double kCapOfAPair = 60.0;      // tanh, three times
  constexpr double kTurnOfANumber = 40.0;   // cos and sin of a pair, there and back
  constexpr double kNormOfANumber = 20.0;
  const double query_width = static_cast<double>(config.heads_width());
  const double key_width = static_cast<double>(config.H_kv() * config.d_k());
  const double rows = static_cast<double>(R), tokens = static_cast<double>(keys);
  const double projected = 2.0 * (rows * query_width + tokens * key_width);  // numbers of q and output, of k and v
  const double turned = rows * query_width + tokens * key_width;             // numbers of q and k
  const double pairs = rows * tokens * static_cast<double>(config.H) * (config.causal ? 0.5 : 1.0);
  // A projection is one product forward and two backward. Attention has two forward and four backward, and its
  // backward pass works out the forward one again; the slope of a capped score takes one more product.
  const double products = config.softcap.has_value() ? 9.0 : 8.0;
  const double of_a_pair =
      products * static_cast<double>(config.d_k()) + kSoftmaxOfAPair + (config.softcap.has_value() ? kCapOfAPair : 0.0);
  const double of_a_number = (config.rope.has_value() ? kTurnOfANumber : 0.0) + (config.qk_norm ? kNormOfANumber : 0.0);
  return static_cast<double>(B) *
         (3.0 * projected * static_cast<double>(config.d_model) + turned * of_a_number + pairs * of_a_pair);
}

}  // namespace attn
