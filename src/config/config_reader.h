// Typed access to the fields of a config's JSON: every value that is not what was asked for becomes a ConfigError
// "source: /json/pointer: what is allowed, what was found". Knows types and ranges, not the meaning of a key.
// Private to this room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/words.h"

namespace attn {

/// Where a config's values come from. A value given by --set or --sweep belongs to the command line, all others to the
/// file: that decides the name in an error and the folder from which a relative path starts.
struct ConfigSource {
  std::string name;                           ///< a path, "-" or "--set".
  std::filesystem::path base_folder;          ///< relative paths in the file start here.
  std::set<std::string> set_pointers = {};    ///< JSON pointers of what --set gave.
  std::set<std::string> sweep_pointers = {};  ///< of what --sweep gave.
  bool is_model_config = false;               ///< a model's own: its keys became ours (model_config.h).
  /// For a model's own config: where the value at a pointer stands in the file: "/H" -> "/num_attention_heads".
  std::map<std::string, std::string> file_pointers = {};

  /// The value at `pointer`, or one around it, was given by --set or --sweep.
  bool is_set(const std::string& pointer) const;
  /// "configs/tiny.json: /H"; "llama.json: /H (/num_attention_heads in the file)".
  std::string where(const std::string& pointer) const;
};

/// A value for an error message: `the string "4"`, `1.5`, `an array`.
std::string describe(const nlohmann::json& value);

/// `parent` + "/" + `key`, escaped as RFC 6901 has it.
std::string pointer_to(const std::string& parent, std::string_view key);

/// As unknown_word(), and knows what other programs call our words: "fp16" is "float16".
std::string unknown_config_word(std::string_view kind, const std::string& word, const std::vector<std::string>& known);

/// One object of a config. Looks at JSON and source without owning them. A field that is null is absent.
class ObjectReader {
 public:
  /// Throws ConfigError when `value` is no object.
  ObjectReader(const nlohmann::json& value, std::string pointer, const ConfigSource& source);

  /// Throws ConfigError for a key that is neither in `known` nor a comment: `unknown <kind> "haeds"; did you mean ...`.
  void refuse_unknown_keys(std::string_view kind, const std::vector<std::string>& known) const;

  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;  ///< UTF-8, not empty.
  std::optional<ObjectReader> object(std::string_view key) const;

  /// A path, made absolute: from the file's folder, or from the working folder when the command line gave it.
  std::optional<std::filesystem::path> path(std::string_view key) const;

  /// A word of a family, named by its key in the error.
  template <typename Value, std::size_t kCount>
  std::optional<Value> word(std::string_view key, const Words<Value, kCount>& words) const {
    const std::optional<std::string> found = string_among(key, all_words(words));
    return found ? value_of(words, *found) : std::nullopt;
  }

  /// The object itself.
  const nlohmann::json& json() const { return *object_; }

  /// The raw value; null when absent.
  const nlohmann::json* find(std::string_view key) const;

  std::string pointer(std::string_view key) const { return pointer_to(pointer_, key); }
  std::string where(std::string_view key) const { return source_->where(pointer(key)); }
  const ConfigSource& source() const { return *source_; }

  [[noreturn]] void fail(std::string_view key, const std::string& text) const;

  /// The key is one that must not be there: `must be left out <reason>`.
  void refuse_key(std::string_view key, const std::string& reason) const;

 private:
  std::optional<std::string> string_among(std::string_view key, const std::vector<std::string>& words) const;

  const nlohmann::json* object_;
  std::string pointer_;
  const ConfigSource* source_;
};

/// The value as an integer in [min, max]; absent for anything else, `4.0` and `1e3` included: a fraction is no integer.
std::optional<std::int64_t> as_integer(const nlohmann::json& value, std::int64_t min, std::int64_t max);

/// "must be an integer from 1 to 9, got 1.5".
std::string not_an_integer(const nlohmann::json& value, std::int64_t min, std::int64_t max);

}  // namespace attn
