#include "config/token_labels.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "files/strict_json.h"

namespace attn {
namespace {

std::optional<std::vector<std::string>> as_words(const nlohmann::json& value, std::int64_t T) {
  if (!value.is_array() || static_cast<std::int64_t>(value.size()) != T) return std::nullopt;
  std::vector<std::string> words;
  for (const nlohmann::json& word : value) {
    if (!word.is_string()) return std::nullopt;
    words.push_back(word.get<std::string>());
  }
  return words;
}

}  // namespace

std::optional<std::vector<std::vector<std::string>>> parse_token_labels(std::string_view text, std::int64_t B,
                                                                        std::int64_t T) {
  nlohmann::json parsed;
  try {
    parsed = parse_strict_json(text, "tokens");
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  if (const auto shared = as_words(parsed, T)) {
    return std::vector<std::vector<std::string>>(static_cast<std::size_t>(B), *shared);
  }
  if (!parsed.is_array() || static_cast<std::int64_t>(parsed.size()) != B) return std::nullopt;
  std::vector<std::vector<std::string>> labels;
  for (const nlohmann::json& item : parsed) {
    const auto words = as_words(item, T);
    if (!words.has_value()) return std::nullopt;
    labels.push_back(*words);
  }
  return labels;
}

}  // namespace attn
