#include "config/config_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"

namespace attn {

namespace {

constexpr std::size_t kLongestPointer = 120;  ///< characters in an error; a key may have any number of them.

/// What other programs call our keys at the top of a config. For "did you mean" only.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kKeySynonyms{
    {{"num_kv_heads", "H_kv"},
     {"num_key_value_heads", "H_kv"},
     {"n_kv_heads", "H_kv"},
     {"num_heads", "H"},
     {"n_heads", "H"},
     {"num_attention_heads", "H"},
     {"rope_style", "rope.style"},
     {"rope_theta", "rope.theta"},
     {"max_position_embeddings", "max_seq_len"},
     {"hidden_size", "d_model"},
     {"n_embd", "d_model"},
     {"embed_dim", "d_model"},
     {"head_dim", "d_k"},
     {"sliding_window", "window"},
     {"logit_softcapping", "softcap"}}};

bool is_within(const std::set<std::string>& pointers, const std::string& pointer) {
  return std::any_of(pointers.begin(), pointers.end(), [&](const std::string& set) {
    return pointer == set ||
           (pointer.size() > set.size() && pointer.compare(0, set.size(), set) == 0 && pointer[set.size()] == '/');
  });
}

}  // namespace

bool ConfigSource::is_set(const std::string& pointer) const {
  return is_within(set_pointers, pointer) || is_within(sweep_pointers, pointer);
}

std::string ConfigSource::where(const std::string& pointer) const {
  const std::string source_of_value = is_within(sweep_pointers, pointer) ? "--sweep"
                                      : is_within(set_pointers, pointer) ? "--set"
                                                                         : printable(name);
  if (pointer.empty()) return source_of_value;
  const auto in_file = file_pointers.find(pointer);
  const std::string place = source_of_value + ": " + shortened(pointer, kLongestPointer);
  if (in_file == file_pointers.end() || is_set(pointer)) return place;
  // A model's default stands nowhere in the file, and has words instead of a pointer.
  const bool is_in_file = in_file->second.starts_with('/');
  return place + " (" + in_file->second + (is_in_file ? " in the file)" : ")");
}

std::string unknown_config_word(std::string_view kind, const std::string& word, const std::vector<std::string>& known) {
  for (const auto& [other, ours] : kSynonyms) {
    if (other != word || std::find(known.begin(), known.end(), ours) == known.end()) continue;
    return "unknown " + std::string(kind) + " " + in_quotes(word) + "; did you mean " + in_quotes(ours) + "?";
  }
  return unknown_word(kind, word, known);
}

std::string describe(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return "an array";
    case nlohmann::json::value_t::string:
      return "the string " + in_quotes(value.get_ref<const std::string&>());
    default:
      return value.dump();
  }
}

std::string pointer_to(const std::string& parent, std::string_view key) {
  std::string pointer = parent + "/";
  for (const char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

std::optional<std::int64_t> as_integer(const nlohmann::json& value, std::int64_t min, std::int64_t max) {
  if (!value.is_number_integer()) return std::nullopt;
  // An unsigned value may be beyond int64, where get<int64_t>() would wrap silently.
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < min || number > max) return std::nullopt;
  return number;
}

std::string not_an_integer(const nlohmann::json& value, std::int64_t min, std::int64_t max) {
  std::string text =
      "must be an integer from " + std::to_string(min) + " to " + std::to_string(max) + ", got " + describe(value);
  if (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>()) {
    text += "; write it without a point or an exponent";
  }
  return text;
}

ObjectReader::ObjectReader(const nlohmann::json& value, std::string pointer, const ConfigSource& source)
    : object_(&value), pointer_(std::move(pointer)), source_(&source) {
  if (!value.is_object()) throw ConfigError(source.where(pointer_) + ": must be an object, got " + describe(value));
}

void ObjectReader::refuse_unknown_keys(std::string_view kind, const std::vector<std::string>& known) const {
  for (const auto& item : object_->items()) {
    const std::string& key = item.key();
    const bool is_comment = !key.empty() && key.front() == '_';
    if (is_comment || std::find(known.begin(), known.end(), key) != known.end()) continue;
    for (const auto& [other, ours] : kKeySynonyms) {
      if (!pointer_.empty() || key != other) continue;
      fail(key, "unknown " + std::string(kind) + " " + in_quotes(key) + "; did you mean " + in_quotes(ours) + "?");
    }
    fail(key, unknown_word(kind, key, known));
  }
}

const nlohmann::json* ObjectReader::find(std::string_view key) const {
  const auto found = object_->find(std::string(key));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> ObjectReader::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value, min, max);
  if (!number) fail(key, not_an_integer(*value, min, max));
  return number;
}

std::optional<double> ObjectReader::number(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(key, "must be a number, got " + describe(*value));
  return value->get<double>();
}

std::optional<bool> ObjectReader::boolean(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(key, "must be true or false, got " + describe(*value));
  return value->get<bool>();
}

std::optional<std::string> ObjectReader::string(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, "must be a string, got " + describe(*value));
  std::string text = value->get<std::string>();
  if (text.empty()) fail(key, "must not be empty");
  if (find_invalid_utf8(text)) fail(key, "must be UTF-8, got " + in_quotes(text));
  return text;
}

std::optional<ObjectReader> ObjectReader::object(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return ObjectReader(*value, pointer(key), *source_);
}

std::optional<std::filesystem::path> ObjectReader::path(std::string_view key) const {
  const std::optional<std::string> text = string(key);
  if (!text) return std::nullopt;
  if (text->find('\0') != std::string::npos) fail(key, "must be a path, got " + in_quotes(*text));
  const std::filesystem::path given(*text);
  const auto whole = std::filesystem::absolute(source_->is_set(pointer(key)) ? given : source_->base_folder / given);
  // The effective config holds this path, and JSON holds UTF-8 only.
  if (find_invalid_utf8(whole.native()))
    fail(key, "must lie in a folder with a UTF-8 name, got " + in_quotes(whole.native()));
  return whole.lexically_normal();
}

std::optional<std::string> ObjectReader::string_among(std::string_view key,
                                                      const std::vector<std::string>& words) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, "must be one of " + join(words) + ", got " + describe(*value));
  std::string text = value->get<std::string>();
  if (std::find(words.begin(), words.end(), text) == words.end()) fail(key, unknown_config_word(key, text, words));
  return text;
}

void ObjectReader::fail(std::string_view key, const std::string& text) const {
  throw ConfigError(where(key) + ": " + text);
}

void ObjectReader::refuse_key(std::string_view key, const std::string& reason) const {
  if (has(key)) fail(key, "must be left out " + reason);
}

}  // namespace attn
