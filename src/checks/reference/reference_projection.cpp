#include "checks/reference/reference_projection.h"

#include <cstddef>
#include <stdexcept>

namespace attn {
namespace {

std::size_t place(std::int64_t number) { return static_cast<std::size_t>(number); }

std::int64_t heads_of(const AttentionConfig& config, ReferencePart part) {
  return part == ReferencePart::kQuery ? config.H : config.H_kv();
}

/// all q, then all k, then all v
std::int64_t fused_row(const AttentionConfig& config, ReferencePart part, std::int64_t h) {
  switch (part) {
    case ReferencePart::kQuery:
      return h * config.d_k();
    case ReferencePart::kKey:
      return (config.H + h) * config.d_k();
    case ReferencePart::kValue:
      return (config.H + config.H_kv() + h) * config.d_k();
  }
  throw std::logic_error("a projection without rows");
}

/// key head by key head: the query heads that use it, then k, then v
std::int64_t per_head_row(const AttentionConfig& config, ReferencePart part, std::int64_t h) {
  const std::int64_t sharing = config.H / config.H_kv();
  const std::int64_t of_a_key_head = (sharing + 2) * config.d_k();
  switch (part) {
    case ReferencePart::kQuery:
      return h / sharing * of_a_key_head + h % sharing * config.d_k();
    case ReferencePart::kKey:
      return h * of_a_key_head + sharing * config.d_k();
    case ReferencePart::kValue:
      return h * of_a_key_head + (sharing + 1) * config.d_k();
  }
  throw std::logic_error("a projection without rows");
}

/// Which row of the linear layer's weight makes channel 0 of head h; the others follow.
std::int64_t first_row(const AttentionConfig& config, ReferencePart part, std::int64_t h) {
  switch (config.qkv) {
    case QkvLayout::kFused:
      return fused_row(config, part, h);
    case QkvLayout::kFusedPerHead:
      return per_head_row(config, part, h);
    case QkvLayout::kSeparate:
      return h * config.d_k();
  }
  throw std::logic_error("a qkv layout without rows");
}

bool comes_from_memory(const ReferenceLayerInput& input, ReferencePart part) {
  return input.T_k != 0 && part != ReferencePart::kQuery;
}

/// Where channel c of head h of the r-th row stands in the context, (B, H, R, d_k).
struct ContextPlace {
  const AttentionConfig& config;
  std::int64_t R;

  std::size_t operator()(std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c) const {
    return place(((b * config.H + h) * R + r) * config.d_k() + c);
  }
};

}  // namespace

std::string reference_projection_name(QkvLayout layout, ReferencePart part) {
  switch (layout) {
    case QkvLayout::kFused:
      return "c_attn";
    case QkvLayout::kFusedPerHead:
      return "qkv_proj";
    case QkvLayout::kSeparate:
      return part == ReferencePart::kQuery ? "q_proj" : part == ReferencePart::kKey ? "k_proj" : "v_proj";
  }
  throw std::logic_error("a qkv layout without names");
}

std::string reference_output_name(QkvLayout layout) { return layout == QkvLayout::kFused ? "c_proj" : "o_proj"; }

std::vector<double> reference_project(const ReferenceLayerInput& input, ReferencePart part,
                                      const std::vector<std::int64_t>& tokens) {
  const AttentionConfig& config = input.config;
  const std::string name = reference_projection_name(config.qkv, part);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  const std::vector<double>* bias = config.bias ? &input.parameters.at(name + ".bias") : nullptr;
  const std::vector<double>& source = comes_from_memory(input, part) ? input.memory : input.x;
  const std::int64_t length = comes_from_memory(input, part) ? input.T_k : input.T;
  std::vector<double> heads;
  heads.reserve(place(input.B * heads_of(config, part) * config.d_k()) * tokens.size());
  for (std::int64_t b = 0; b < input.B; ++b) {
    for (std::int64_t h = 0; h < heads_of(config, part); ++h) {
      for (const std::int64_t t : tokens) {
        for (std::int64_t c = 0; c < config.d_k(); ++c) {
          const std::int64_t row = first_row(config, part, h) + c;
          double sum = bias != nullptr ? (*bias)[place(row)] : 0.0;
          for (std::int64_t m = 0; m < config.d_model; ++m) {
            sum += weight[place(row * config.d_model + m)] * source[place((b * length + t) * config.d_model + m)];
          }
          heads.push_back(sum);
        }
      }
    }
  }
  return heads;
}

void reference_project_backward(const ReferenceLayerInput& input, ReferencePart part,
                                const std::vector<std::int64_t>& tokens, const std::vector<double>& d_heads,
                                ReferenceLayerGradients& gradients) {
  const AttentionConfig& config = input.config;
  const std::string name = reference_projection_name(config.qkv, part);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  std::vector<double>& d_weight = gradients.parameters.at(name + ".weight");
  std::vector<double>* d_bias = config.bias ? &gradients.parameters.at(name + ".bias") : nullptr;
  const std::vector<double>& source = comes_from_memory(input, part) ? input.memory : input.x;
  std::vector<double>& d_source = comes_from_memory(input, part) ? gradients.memory : gradients.x;
  const std::int64_t length = comes_from_memory(input, part) ? input.T_k : input.T;
  std::size_t next = 0;
  for (std::int64_t b = 0; b < input.B; ++b) {
    for (std::int64_t h = 0; h < heads_of(config, part); ++h) {
      for (const std::int64_t t : tokens) {
        for (std::int64_t c = 0; c < config.d_k(); ++c) {
          const std::int64_t row = first_row(config, part, h) + c;
          const double gradient = d_heads[next++];
          if (d_bias != nullptr) (*d_bias)[place(row)] += gradient;
          for (std::int64_t m = 0; m < config.d_model; ++m) {
            const std::size_t of_source = place((b * length + t) * config.d_model + m);
            const std::size_t of_weight = place(row * config.d_model + m);
            d_weight[of_weight] += gradient * source[of_source];
            d_source[of_source] += gradient * weight[of_weight];
          }
        }
      }
    }
  }
}

std::vector<double> reference_project_output(const ReferenceLayerInput& input, const std::vector<double>& context,
                                             std::int64_t R) {
  const AttentionConfig& config = input.config;
  const std::string name = reference_output_name(config.qkv);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  const std::vector<double>* bias = config.output_bias() ? &input.parameters.at(name + ".bias") : nullptr;
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

std::vector<double> reference_project_output_backward(const ReferenceLayerInput& input,
                                                      const std::vector<double>& context, std::int64_t R,
                                                      const std::vector<double>& d_output,
                                                      ReferenceLayerGradients& gradients) {
  const AttentionConfig& config = input.config;
  const std::string name = reference_output_name(config.qkv);
  const std::vector<double>& weight = input.parameters.at(name + ".weight");
  std::vector<double>& d_weight = gradients.parameters.at(name + ".weight");
  std::vector<double>* d_bias = config.output_bias() ? &gradients.parameters.at(name + ".bias") : nullptr;
  const ContextPlace context_place{config, R};
  std::vector<double> d_context(context.size(), 0.0);
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

}  // namespace attn
