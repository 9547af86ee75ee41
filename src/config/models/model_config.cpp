#include "config/models/model_config.h"

#include "config/models/model_types.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr const char* kModelType = "model_type";
constexpr std::string_view kLayerWord = "layer=";

/// Takes the words that begin with "layer=" out; the last one counts, as for every other key.
std::optional<std::int64_t> take_layer_word(std::vector<std::string>& words, const char* option) {
  std::optional<std::int64_t> layer;
  std::vector<std::string> others;
  for (std::string& word : words) {
    if (!word.starts_with(kLayerWord)) {
      others.push_back(std::move(word));
      continue;
    }
    const std::string value = word.substr(kLayerWord.size());
    layer = parse_int64(value);
    if (!layer || *layer < 0) {
      throw ConfigError(std::string(option) + ": /layer: must be an integer of at least 0, got " + in_quotes(value));
    }
  }
  words = std::move(others);
  return layer;
}

}  // namespace

bool is_model_config(const nlohmann::json& root) { return root.is_object() && root.contains(kModelType); }

std::optional<std::int64_t> take_layer(std::vector<std::string>& set_words, std::vector<std::string>& sweep_words) {
  const auto set = take_layer_word(set_words, "--set");
  const auto swept = take_layer_word(sweep_words, "--sweep");
  return swept ? swept : set;
}

std::set<std::string> keys_of(const std::vector<std::string>& set_words, const std::vector<std::string>& sweep_words) {
  std::set<std::string> keys;
  for (const auto* words : {&set_words, &sweep_words}) {
    for (const std::string& word : *words) keys.insert(word.substr(0, word.find('=')));
  }
  return keys;
}

ModelConfig translate_model_config(const nlohmann::json& root, const ConfigSource& source,
                                   std::optional<std::int64_t> layer, const std::set<std::string>& given_keys) {
  const ObjectReader file(root, "", source);
  const auto name = file.string(kModelType);
  if (!name) file.fail(kModelType, "must be a string, got null");
  std::vector<std::string> known;
  for (const ModelType& type : model_types()) {
    known.push_back(type.name);
    if (type.name != *name) continue;
    ModelReader model(root, source, *name, layer, given_keys);
    type.translate(model);
    return model.finish();
  }
  // No "did you mean": a model of a similar name is another model.
  file.fail(kModelType, "unknown model type " + in_quotes(*name) + "; known: " + join(known));
}

}  // namespace attn
