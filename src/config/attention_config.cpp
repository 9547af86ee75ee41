#include "config/attention_config.h"

#include "config/words.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

bool is_size(std::int64_t value) { return value >= 1 && value <= kMaxSize; }

ConfigFault not_a_size(const char* key, std::int64_t value) {
  return {key, "must be an integer from 1 to " + std::to_string(kMaxSize) + ", got " + std::to_string(value)};
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
  return std::nullopt;
}

void validate(const AttentionConfig& config) {
  if (const auto fault = find_fault(config)) throw ConfigError(fault->key + ": " + fault->text);
}

std::string to_string(ModuleKind module) { return word_of(kModuleWords, module); }
std::string to_string(QkvLayout layout) { return word_of(kQkvWords, layout); }
std::string to_string(Positions positions) { return word_of(kPositionsWords, positions); }

}  // namespace attn
