// A model's own config.json, as model hubs keep it beside the weights, read as a config of one of its attention layers:
// its keys become ours. Recognised by its key `model_type`. Private to this room; config_file.cpp is the caller.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/config_reader.h"

namespace attn {

/// The same layer in our keys. B and T are not in it: no model says them.
struct ModelConfig {
  nlohmann::json config;
  /// "H_kv 8 from /num_key_value_heads", one line a key of ours, which begins with it; and "/a, /b: looked at ...".
  /// Lines that begin with neither are remarks: every run prints them, not only `config`.
  std::vector<std::string> origins;
  /// For errors: "/H_kv" -> "/num_key_value_heads", or "32, the default of qwen2, as the file has no /num_...".
  std::map<std::string, std::string> file_pointers;
  std::optional<std::int64_t> longest;  ///< tokens that the model takes, where its file says it.
  std::string longest_key;              ///< by which of its keys.
};

/// Whether the config has a `model_type`: ours have none.
bool is_model_config(const nlohmann::json& root);

/// Takes "layer=N" out of the words of --set and --sweep; absent when there is none. Layers of one model may differ
/// (Gemma 2's windows), so this one key is of the model and not of the layer. Throws ConfigError for an N that is none.
std::optional<std::int64_t> take_layer(std::vector<std::string>& set_words, std::vector<std::string>& sweep_words);

/// The keys that these words give: "rope.theta" for "rope.theta=1". What they give is not refused in the model.
std::set<std::string> keys_of(const std::vector<std::string>& set_words, const std::vector<std::string>& sweep_words);

/// Translates. A key that changes attention in a way that our keys cannot say is refused, never passed over; an unknown
/// key whose name only sounds like it, too, unless its value is null or what this layer does anyway; and so is a key of
/// ours that the model's files have not. Every key of the file is named in one of the origins, read or not. Two names
/// of one key must have one value. Throws ConfigError: an unknown model type (with the list of the known ones), a layer
/// the model has not, a refused key, a value of the wrong type.
ModelConfig translate_model_config(const nlohmann::json& root, const ConfigSource& source,
                                   std::optional<std::int64_t> layer, const std::set<std::string>& given_keys);

}  // namespace attn
