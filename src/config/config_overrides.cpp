#include "config/config_overrides.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "files/strict_json.h"

namespace attn {
namespace {

std::vector<std::string> split_at_dots(const std::string& key) {
  std::vector<std::string> parts(1);
  for (const char c : key) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

nlohmann::json parse_value(const std::string& text) {
  try {
    return parse_strict_json(text, "--set");
  } catch (const Error&) {
    return text;  // `--set device=cuda`: a shell user should not have to write quotes.
  }
}

void apply_set_word(nlohmann::json& root, ConfigSource& source, const std::string& word, OverrideOption option) {
  const std::string name = option == OverrideOption::kSet ? "--set" : "--sweep";
  std::set<std::string>& given = option == OverrideOption::kSet ? source.set_pointers : source.sweep_pointers;
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) throw ConfigError(name + ": must be KEY=VALUE, got " + in_quotes(word));
  const std::vector<std::string> keys = split_at_dots(word.substr(0, equals));

  nlohmann::json* object = &root;
  std::string pointer;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty())
      throw ConfigError(name + ": must be KEY=VALUE with a key, nested keys with dots, got " + in_quotes(word));
    if (object->is_null()) {
      *object = nlohmann::json::object();
      given.insert(pointer);
    }
    if (!object->is_object()) {
      throw ConfigError(name + ": " + shortened(pointer_to(pointer, keys[i])) + ": " + shortened(pointer) +
                        " must be an object to have keys, got " + describe(*object));
    }
    object = &(*object)[keys[i]];
    pointer = pointer_to(pointer, keys[i]);
  }
  *object = parse_value(word.substr(equals + 1));
  given.insert(pointer);
}

}  // namespace

void apply_set_words(nlohmann::json& root, ConfigSource& source, const std::vector<std::string>& set_words,
                     OverrideOption option) {
  for (const std::string& word : set_words) apply_set_word(root, source, word, option);
}

}  // namespace attn
