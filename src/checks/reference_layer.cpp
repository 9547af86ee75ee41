#include "checks/reference_layer.h"

#include <array>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "checks/reference_attention.h"

namespace attn {
namespace {

enum Part : std::int64_t { kQueryPart = 0, kKeyPart = 1, kValuePart = 2 };
constexpr std::array kParts{kQueryPart, kKeyPart, kValuePart};

std::size_t place(std::int64_t number) { return static_cast<std::size_t>(number); }

std::vector<double> zeros(std::int64_t count) { return std::vector<double>(place(count), 0.0); }

/// The linear layer that makes q, k or v.
std::string projection_of(QkvLayout layout, Part part) {
  switch (layout) {
    case QkvLayout::kFused:
      return "c_attn";
    case QkvLayout::kFusedPerHead:
      return "qkv_proj";
    case QkvLayout::kSeparate:
      return part == kQueryPart ? "q_proj" : part == kKeyPart ? "k_proj" : "v_proj";
  }
  throw std::logic_error("a qkv layout without names");
}

std::string output_projection_of(QkvLayout layout) { return layout == QkvLayout::kFused ? "c_proj" : "o_proj"; }

/// Which row of that layer's weight makes channel c of head h.
std::int64_t projection_row(const AttentionConfig& config, Part part, std::int64_t h, std::int64_t c) {
  const std::int64_t d_k = config.d_k();
  switch (config.qkv) {
    case QkvLayout::kFused:
      return part * config.H * d_k + h * d_k + c;
    case QkvLayout::kFusedPerHead:
      return h * 3 * d_k + part * d_k + c;
    case QkvLayout::kSeparate:
      return h * d_k + c;
  }
  throw std::logic_error("a qkv layout without rows");
}

std::vector<std::int64_t> every_token(std::int64_t T) {
  std::vector<std::int64_t> tokens(place(T));
  std::iota(tokens.begin(), tokens.end(), std::int64_t{0});
  return tokens;
}

/// The tokens whose queries are worked out.
std::vector<std::int64_t> query_rows(const ReferenceLayerInput& input) {
  return input.rows.empty() ? every_token(input.T) : input.rows;
}

/// q, k or v of these tokens: (B, H, tokens, d_k).
std::vector<double> project(const ReferenceLayerInput& input, Part part, const std::vector<std::int64_t>& tokens) {
  const AttentionConfig& config = input.config;
  const std::string name = projection_of(config.qkv, part);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  const std::vector<double>* bias = config.bias ? &input.parameters.at(name + ".bias") : nullptr;
  std::vector<double> heads;
  heads.reserve(place(input.B * config.H * config.d_k()) * tokens.size());
  for (std::int64_t b = 0; b < input.B; ++b) {
    for (std::int64_t h = 0; h < config.H; ++h) {
      for (const std::int64_t t : tokens) {
        for (std::int64_t c = 0; c < config.d_k(); ++c) {
          const std::int64_t row = projection_row(config, part, h, c);
          double sum = bias != nullptr ? (*bias)[place(row)] : 0.0;
          for (std::int64_t m = 0; m < config.d_model; ++m) {
            sum += weight[place(row * config.d_model + m)] * input.x[place((b * input.T + t) * config.d_model + m)];
          }
          heads.push_back(sum);
        }
      }
    }
  }
  return heads;
}

/// Takes the gradient of q, k or v of these tokens, (B, H, tokens, d_k), back through its projection.
void project_backward(const ReferenceLayerInput& input, Part part, const std::vector<std::int64_t>& tokens,
                      const std::vector<double>& d_heads, ReferenceLayerGradients& gradients) {
  const AttentionConfig& config = input.config;
  const std::string name = projection_of(config.qkv, part);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  std::vector<double>& d_weight = gradients.parameters.at(name + ".weight");
  std::vector<double>* d_bias = config.bias ? &gradients.parameters.at(name + ".bias") : nullptr;
  std::size_t next = 0;
  for (std::int64_t b = 0; b < input.B; ++b) {
    for (std::int64_t h = 0; h < config.H; ++h) {
      for (const std::int64_t t : tokens) {
        for (std::int64_t c = 0; c < config.d_k(); ++c) {
          const std::int64_t row = projection_row(config, part, h, c);
          const double gradient = d_heads[next++];
          if (d_bias != nullptr) (*d_bias)[place(row)] += gradient;
          for (std::int64_t m = 0; m < config.d_model; ++m) {
            const std::size_t of_x = place((b * input.T + t) * config.d_model + m);
            const std::size_t of_weight = place(row * config.d_model + m);
            d_weight[of_weight] += gradient * input.x[of_x];
            gradients.x[of_x] += gradient * weight[of_weight];
          }
        }
      }
    }
  }
}

/// Where channel c of head h of the r-th row stands in the context, (B, H, R, d_k).
struct ContextPlace {
  const AttentionConfig& config;
  std::int64_t R;

  std::size_t operator()(std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c) const {
    return place(((b * config.H + h) * R + r) * config.d_k() + c);
  }
};

/// (B, R, d_model): output channel o of the row is the sum over heads and channels of weight[o, h*d_k + c] *
/// context[h, c].
std::vector<double> project_output(const ReferenceLayerInput& input, const std::vector<double>& context,
                                   std::int64_t R) {
  const AttentionConfig& config = input.config;
  const std::string name = output_projection_of(config.qkv);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  const std::vector<double>* bias = config.bias ? &input.parameters.at(name + ".bias") : nullptr;
  const ContextPlace context_place{config, R};
  std::vector<double> output;
  output.reserve(place(input.B * R * config.d_model));
  for (std::int64_t b = 0; b < input.B; ++b) {
    for (std::int64_t r = 0; r < R; ++r) {
      for (std::int64_t o = 0; o < config.d_model; ++o) {
        double sum = bias != nullptr ? (*bias)[place(o)] : 0.0;
        for (std::int64_t h = 0; h < config.H; ++h) {
          for (std::int64_t c = 0; c < config.d_k(); ++c) {
            sum += weight[place((o * config.H + h) * config.d_k() + c)] * context[context_place(b, h, r, c)];
          }
        }
        output.push_back(sum);
      }
    }
  }
  return output;
}

/// The gradient of context, (B, H, R, d_k).
std::vector<double> project_output_backward(const ReferenceLayerInput& input, const std::vector<double>& context,
                                            std::int64_t R, const std::vector<double>& d_output,
                                            ReferenceLayerGradients& gradients) {
  const AttentionConfig& config = input.config;
  const std::string name = output_projection_of(config.qkv);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  std::vector<double>& d_weight = gradients.parameters.at(name + ".weight");
  std::vector<double>* d_bias = config.bias ? &gradients.parameters.at(name + ".bias") : nullptr;
  const ContextPlace context_place{config, R};
  std::vector<double> d_context = zeros(input.B * config.H * R * config.d_k());
  for (std::int64_t b = 0; b < input.B; ++b) {
    for (std::int64_t r = 0; r < R; ++r) {
      for (std::int64_t o = 0; o < config.d_model; ++o) {
        const double gradient = d_output[place((b * R + r) * config.d_model + o)];
        if (d_bias != nullptr) (*d_bias)[place(o)] += gradient;
        for (std::int64_t h = 0; h < config.H; ++h) {
          for (std::int64_t c = 0; c < config.d_k(); ++c) {
            const std::size_t of_weight = place((o * config.H + h) * config.d_k() + c);
            d_weight[of_weight] += gradient * context[context_place(b, h, r, c)];
            d_context[context_place(b, h, r, c)] += gradient * weight[of_weight];
          }
        }
      }
    }
  }
  return d_context;
}

/// Sizes, and which keys the rows see; q, k and v are for the caller to fill in.
ReferenceCoreInput core_of(const ReferenceLayerInput& input, const std::vector<std::int64_t>& rows) {
  ReferenceCoreInput core;
  core.B = input.B;
  core.H = input.config.H;
  core.T_q = static_cast<std::int64_t>(rows.size());
  core.T_k = input.T;
  core.d_k = input.config.d_k();
  core.causal = input.config.causal;
  core.last_visible = rows;  // a token may look at itself and at earlier ones
  return core;
}

}  // namespace

std::vector<ParameterShape> reference_parameters(const AttentionConfig& config) {
  const std::int64_t width = config.H * config.d_k();
  std::vector<ParameterShape> parameters;
  const auto add_layer = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    parameters.push_back({name + ".weight", {to, from}});
    if (config.bias) parameters.push_back({name + ".bias", {to}});
  };
  if (config.qkv == QkvLayout::kSeparate) {
    for (const Part part : kParts) add_layer(projection_of(config.qkv, part), config.d_model, width);
  } else {
    add_layer(projection_of(config.qkv, kQueryPart), config.d_model, 3 * width);
  }
  add_layer(output_projection_of(config.qkv), width, config.d_model);
  return parameters;
}

ReferenceLayerOutput reference_layer(const ReferenceLayerInput& input) {
  const std::vector<std::int64_t> rows = query_rows(input), tokens = every_token(input.T);
  ReferenceCoreInput core = core_of(input, rows);
  core.q = project(input, kQueryPart, rows);
  core.k = project(input, kKeyPart, tokens);
  core.v = project(input, kValuePart, tokens);
  ReferenceCoreOutput attended = reference_core(core);
  ReferenceLayerOutput output;
  output.output = project_output(input, attended.context, core.T_q);
  output.q = std::move(core.q);
  output.k = std::move(core.k);
  output.v = std::move(core.v);
  output.weights = std::move(attended.weights);
  output.context = std::move(attended.context);
  return output;
}

ReferenceLayerGradients reference_layer_backward(const ReferenceLayerInput& input, const ReferenceLayerOutput& forward,
                                                 const std::vector<double>& d_output) {
  const std::vector<std::int64_t> rows = query_rows(input), tokens = every_token(input.T);
  ReferenceLayerGradients gradients;
  gradients.x = zeros(input.B * input.T * input.config.d_model);
  for (const ParameterShape& parameter : reference_parameters(input.config)) {
    gradients.parameters[parameter.name].assign(input.parameters.at(parameter.name).size(), 0.0);
  }
  ReferenceCoreInput core = core_of(input, rows);
  core.q = forward.q;
  core.k = forward.k;
  core.v = forward.v;
  const std::vector<double> d_context = project_output_backward(input, forward.context, core.T_q, d_output, gradients);
  const ReferenceCoreGradients d_core = reference_core_backward(core, d_context);
  project_backward(input, kQueryPart, rows, d_core.dq, gradients);
  project_backward(input, kKeyPart, tokens, d_core.dk, gradients);
  project_backward(input, kValuePart, tokens, d_core.dv, gradients);
  return gradients;
}

double reference_layer_cost(const AttentionConfig& config, std::int64_t B, std::int64_t T, std::int64_t R) {
  constexpr double kSoftmaxOfAPair = 50.0;  // exp, division, and walking through four (R, T) arrays, twice
  const double width = static_cast<double>(config.heads_width());
  const double rows = static_cast<double>(R), tokens = static_cast<double>(T);
  const double projections = 2.0 * (rows + tokens) * static_cast<double>(config.d_model) * width;  // q, k, v, output
  const double pairs = rows * tokens * static_cast<double>(config.H) * (config.causal ? 0.5 : 1.0);
  // A projection is one product forward and two backward. Attention has two forward and four backward, and its
  // backward pass works out the forward one again.
  return static_cast<double>(B) *
         (3.0 * projections + pairs * (8.0 * static_cast<double>(config.d_k()) + kSoftmaxOfAPair));
}

}  // namespace attn
