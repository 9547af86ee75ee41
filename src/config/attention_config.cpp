#include "config/attention_config.h"

#include <cmath>

#include "config/words.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

/// Finite and above 0; false for NaN.
bool is_positive(double value) { return value > 0.0 && std::isfinite(value); }

ConfigFault not_positive(const char* key, double value) {
  return {key, "must be a finite number above 0, got " + format_number(value, 17)};
}

bool is_size(std::int64_t value) { return value >= 1 && value <= kMaxSize; }

ConfigFault not_a_size(const char* key, std::int64_t value) {
  return {key, "must be an integer from 1 to " + std::to_string(kMaxSize) + ", got " + std::to_string(value)};
}

/// Position times frequency, beyond which float64 has too few digits left of an angle's place on the circle: at 2^32
/// they are 20 bits.
constexpr double kLargestAngle = 4294967296.0;

/// The largest frequency is theta^(-2c / d_k) of the first pair, which is 1, or of the last one where theta < 1.
std::optional<ConfigFault> angle_fault(const AttentionConfig& config, const RopeConfig& rope) {
  const auto d_k = static_cast<double>(config.d_k());
  const double by_theta = rope.theta < 1.0 ? std::pow(rope.theta, -(d_k - 2.0) / d_k) : 1.0;
  const RopeScaling& scaling = rope.scaling;
  const bool divides_all = scaling.kind == RopeScalingKind::kLinear;
  const bool divides_some = scaling.kind == RopeScalingKind::kLlama3 || scaling.kind == RopeScalingKind::kYarn;
  const bool is_divided = divides_all || (divides_some && scaling.factor < 1.0);
  const auto length = static_cast<double>(config.max_seq_len);
  const double angle = by_theta * length / (is_divided ? scaling.factor : 1.0);
  if (angle <= kLargestAngle) return std::nullopt;
  const bool is_of_theta = !(by_theta * length <= kLargestAngle);
  return ConfigFault{is_of_theta ? "rope/theta" : "rope/scaling/factor",
                     "makes an angle of " + format_number(angle) + " at max_seq_len (" +
                         std::to_string(config.max_seq_len) +
                         "), must be at most 2^32: of a larger one too few digits are left to turn by, got " +
                         format_number(is_of_theta ? rope.theta : scaling.factor, 17)};
}

std::optional<ConfigFault> scaling_fault(const RopeConfig& rope) {
  const RopeScaling& scaling = rope.scaling;
  if (scaling.kind == RopeScalingKind::kNone) return std::nullopt;
  if (!is_positive(scaling.factor)) return not_positive("rope/scaling/factor", scaling.factor);
  if (scaling.kind == RopeScalingKind::kLinear) return std::nullopt;
  if (!is_size(scaling.original_max_seq_len)) {
    return not_a_size("rope/scaling/original_max_seq_len", scaling.original_max_seq_len);
  }
  if (scaling.kind == RopeScalingKind::kLlama3) {
    if (!is_positive(scaling.low_freq_factor))
      return not_positive("rope/scaling/low_freq_factor", scaling.low_freq_factor);
    if (!(scaling.high_freq_factor > scaling.low_freq_factor) || !std::isfinite(scaling.high_freq_factor)) {
      return ConfigFault{"rope/scaling/high_freq_factor", "must be a finite number above low_freq_factor (" +
                                                              format_number(scaling.low_freq_factor, 17) + "), got " +
                                                              format_number(scaling.high_freq_factor, 17)};
    }
    return std::nullopt;
  }
  if (!is_positive(scaling.beta_slow)) return not_positive("rope/scaling/beta_slow", scaling.beta_slow);
  if (!(scaling.beta_fast > scaling.beta_slow) || !std::isfinite(scaling.beta_fast)) {
    return ConfigFault{"rope/scaling/beta_fast", "must be a finite number above beta_slow (" +
                                                     format_number(scaling.beta_slow, 17) + "), got " +
                                                     format_number(scaling.beta_fast, 17)};
  }
  if (scaling.attention_factor && !is_positive(*scaling.attention_factor)) {
    return not_positive("rope/scaling/attention_factor", *scaling.attention_factor);
  }
  if (!(rope.theta > 1.0)) {
    return ConfigFault{"rope/theta", "must be above 1 with yarn, which counts turns by its logarithm, got " +
                                         format_number(rope.theta, 17)};
  }
  return std::nullopt;
}

std::optional<ConfigFault> rope_fault(const AttentionConfig& config) {
  if (!config.rope.has_value()) return std::nullopt;
  const RopeConfig& rope = *config.rope;
  if (!is_positive(rope.theta)) return not_positive("rope/theta", rope.theta);
  if (config.d_k() % 2 != 0) {
    return ConfigFault{"rope", "turns pairs of channels, so it needs an even d_k, got " + std::to_string(config.d_k())};
  }
  if (auto fault = scaling_fault(rope)) return fault;
  return angle_fault(config, rope);
}

std::optional<ConfigFault> score_fault(const AttentionConfig& config) {
  if (config.given_scale && !is_positive(*config.given_scale)) return not_positive("scale", *config.given_scale);
  if (config.softcap && !is_positive(*config.softcap)) return not_positive("softcap", *config.softcap);
  if (config.qk_norm && config.d_k() < 2) {
    return ConfigFault{"qk_norm", "needs a d_k of at least 2, as one channel alone is normed to its sign, got d_k " +
                                      std::to_string(config.d_k())};
  }
  // Below it the square of a small number's mean may underflow, and the norm divides by 0.
  constexpr double kLeastEps = 1e-16;
  if (!(config.qk_norm_eps >= kLeastEps && std::isfinite(config.qk_norm_eps))) {
    return ConfigFault{"qk_norm_eps",
                       "must be a finite number from 1e-16 on, got " + format_number(config.qk_norm_eps)};
  }
  if (config.engine == Engine::kExplicit) return std::nullopt;
  const char* missing = config.softcap ? "softcap" : config.sink ? "sink" : nullptr;
  if (missing == nullptr) return std::nullopt;
  return ConfigFault{"engine", "must be explicit with " + std::string(missing) +
                                   ": scaled_dot_product_attention has none, got " + to_string(config.engine)};
}

std::optional<ConfigFault> size_fault(const DocumentMask& mask) {
  if (mask.lengths.empty()) return ConfigFault{"mask/lengths", "must have at least one length, got none"};
  for (const std::int64_t length : mask.lengths) {
    if (!is_size(length)) return not_a_size("mask/lengths", length);
  }
  return std::nullopt;
}

std::optional<ConfigFault> size_fault(const PrefixMask& mask) {
  if (!is_size(mask.length)) return not_a_size("mask/length", mask.length);
  return std::nullopt;
}

std::optional<ConfigFault> size_fault(const DilatedMask& mask) {
  if (!is_size(mask.stride)) return not_a_size("mask/stride", mask.stride);
  return std::nullopt;
}

std::optional<ConfigFault> size_fault(const RowsMask& mask) {
  if (!is_size(mask.queries) || !is_size(mask.keys))
    return ConfigFault{"mask", "must have at least one row and one key"};
  return std::nullopt;
}

std::optional<ConfigFault> size_fault(const BidirectionalMask&) { return std::nullopt; }

std::optional<ConfigFault> mask_fault(const AttentionConfig& config) {
  if (config.window && !is_size(*config.window)) return not_a_size("window", *config.window);
  if (!config.mask.has_value()) return std::nullopt;
  if (config.causal && opens_the_future(*config.mask)) {
    return ConfigFault{"causal", "must be false with a " + mask_kind(*config.mask) +
                                     " mask, which shows keys that a causal mask hides, got true"};
  }
  return std::visit([](const auto& mask) { return size_fault(mask); }, *config.mask);
}

}  // namespace

std::optional<ConfigFault> find_fault(const AttentionConfig& config) {
  if (!is_size(config.d_model)) return not_a_size("d_model", config.d_model);
  if (!is_size(config.H)) return not_a_size("H", config.H);
  if (config.given_d_k && !is_size(*config.given_d_k)) return not_a_size("d_k", *config.given_d_k);
  if (!is_size(config.max_seq_len)) return not_a_size("max_seq_len", config.max_seq_len);
  if (config.module == ModuleKind::kSingleHead && config.H != 1) {
    return ConfigFault{"H", "must be 1 for module single-head, got " + std::to_string(config.H)};
  }
  if (!config.given_d_k && config.d_model % config.H != 0) {
    return ConfigFault{"H", "must divide d_model (" + std::to_string(config.d_model) + ") unless d_k is given, got " +
                                std::to_string(config.H)};
  }
  // Both factors are at most kMaxSize here, so the product fits 64 bits.
  if (config.heads_width() > kMaxSize / 3) {
    return ConfigFault{config.given_d_k ? "d_k" : "d_model",
                       "3 * H * d_k, the width of q, k and v together, must be at most " + std::to_string(kMaxSize) +
                           ", got H = " + std::to_string(config.H) + ", d_k = " + std::to_string(config.d_k())};
  }
  if (!(config.dropout >= 0.0 && config.dropout < 1.0)) {
    return ConfigFault{"dropout",
                       "must be a number of at least 0 and below 1, got " + format_number(config.dropout, 17)};
  }
  if (config.given_H_kv && !is_size(*config.given_H_kv)) return not_a_size("H_kv", *config.given_H_kv);
  if (config.H % config.H_kv() != 0) {
    return ConfigFault{"H_kv",
                       "must divide H (" + std::to_string(config.H) + "), got " + std::to_string(config.H_kv())};
  }
  if (auto fault = mask_fault(config)) return fault;
  if (auto fault = rope_fault(config)) return fault;
  return score_fault(config);
}

AttentionConfig AttentionConfig::without_masks() const {
  AttentionConfig open = *this;
  open.causal = false;
  open.window.reset();
  open.mask.reset();
  return open;
}

void validate(const AttentionConfig& config) {
  if (const auto fault = find_fault(config)) throw ConfigError(fault->key + ": " + fault->text);
}

std::string to_string(ModuleKind module) { return word_of(kModuleWords, module); }
std::string to_string(QkvLayout layout) { return word_of(kQkvWords, layout); }
std::string to_string(Positions positions) { return word_of(kPositionsWords, positions); }
std::string to_string(Engine engine) { return word_of(kEngineWords, engine); }
std::string to_string(RopeStyle style) { return word_of(kRopeStyleWords, style); }
std::string to_string(RopeScalingKind kind) { return word_of(kRopeScalingWords, kind); }

std::string mask_kind(const MaskConfig& mask) {
  // In the order of the variant.
  constexpr std::array kKinds{"bidirectional", "prefix", "document", "dilated", "rows"};
  static_assert(kKinds.size() == std::variant_size_v<MaskConfig>);
  return kKinds[mask.index()];
}

bool opens_the_future(const MaskConfig& mask) {
  return std::holds_alternative<PrefixMask>(mask) || std::holds_alternative<BidirectionalMask>(mask);
}

}  // namespace attn
