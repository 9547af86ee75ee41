#include "config/config_file.h"

#include <algorithm>
#include <istream>

#include <nlohmann/json.hpp>

#include "config/config_keys.h"
#include "config/config_overrides.h"
#include "config/config_reader.h"
#include "config/input_reader.h"
#include "core/error.h"
#include "core/text.h"
#include "files/strict_json.h"
#include "files/whole_file.h"

namespace attn {
namespace {

constexpr std::int64_t kDefaultMaxSeqLen = 1024;
constexpr std::int64_t kMaxSeed = INT64_MAX;
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxDeviceIndex = 127;

/// B, T and d_model may be said by the config, by the input, or by both alike. H by the config only.
struct Sizes {
  std::optional<std::int64_t> B, T, d_model, H;
};

void refuse_contradiction(const ObjectReader& config, const char* key, std::optional<std::int64_t> given,
                          std::optional<std::int64_t> said_by_input, const std::string& input_name) {
  if (given && said_by_input && *given != *said_by_input) {
    config.fail(key, "must be " + std::to_string(*said_by_input) + " as the " + input_name +
                         " has it, or left out, got " + std::to_string(*given));
  }
}

Sizes read_sizes(const ObjectReader& config, const InputFacts& facts) {
  const Sizes given{config.integer("B", 1, kMaxSize), config.integer("T", 1, kMaxSize),
                    config.integer("d_model", 1, kMaxSize), config.integer("H", 1, kMaxSize)};
  refuse_contradiction(config, "B", given.B, facts.B, facts.name);
  refuse_contradiction(config, "T", given.T, facts.T, facts.name);
  refuse_contradiction(config, "d_model", given.d_model, facts.d_model, facts.name);
  const Sizes sizes{given.B ? given.B : facts.B, given.T ? given.T : facts.T,
                    given.d_model ? given.d_model : facts.d_model, given.H};
  std::vector<std::string> missing;
  if (!sizes.B) missing.emplace_back("B");
  if (!sizes.T) missing.emplace_back("T");
  if (!sizes.d_model) missing.emplace_back("d_model");
  if (!sizes.H) missing.emplace_back("H");
  if (!missing.empty()) {
    throw ConfigError(config.source().where("") + ": missing " + join(missing) + ", each an integer of at least 1");
  }
  return sizes;
}

AttentionConfig read_attention(const ObjectReader& config, const Sizes& sizes) {
  AttentionConfig attention;
  attention.d_model = *sizes.d_model;
  attention.H = *sizes.H;
  attention.module = config.word("module", kModuleWords).value_or(attention.module);
  attention.given_d_k = config.integer("d_k", 1, kMaxSize);
  attention.qkv = config.word("qkv", kQkvWords).value_or(attention.qkv);
  attention.bias = config.boolean("bias").value_or(attention.bias);
  attention.dropout = config.number("dropout").value_or(attention.dropout);
  attention.causal = config.boolean("causal").value_or(attention.causal);
  attention.max_seq_len = config.integer("max_seq_len", 1, kMaxSize).value_or(std::max(*sizes.T, kDefaultMaxSeqLen));

  // A d_k that says what would be so anyway is not kept: so the effective config, which has it filled in, reads back
  // alike.
  const bool divides = attention.d_model % attention.H == 0;
  if (divides && attention.given_d_k == attention.d_model / attention.H) attention.given_d_k.reset();

  if (const auto fault = find_fault(attention)) config.fail(fault->key, fault->text);
  if (attention.max_seq_len < *sizes.T) {
    config.fail("max_seq_len",
                "must be at least T (" + std::to_string(*sizes.T) + "), got " + std::to_string(attention.max_seq_len));
  }
  return attention;
}

/// Ids from texts and tokens must lie in the vocabulary.
void check_vocabulary(const ObjectReader& config, const ObjectReader& embedding, std::int64_t vocab_size,
                      const InputFacts& facts) {
  if (!facts.largest_id || *facts.largest_id < vocab_size) return;
  if (facts.largest_id_pointer.empty()) {
    embedding.fail("vocab_size", "must be at least " + std::to_string(*facts.largest_id + 1) +
                                     " for the token ids of this text, got " + std::to_string(vocab_size));
  }
  throw ConfigError(config.source().where(facts.largest_id_pointer) + ": must be an id below vocab_size (" +
                    std::to_string(vocab_size) + "), got " + std::to_string(*facts.largest_id));
}

std::optional<EmbeddingConfig> read_embedding(const ObjectReader& config, const InputFacts& facts,
                                              std::int64_t d_model) {
  const std::optional<ObjectReader> object = config.object("embedding");
  if (!object) {
    if (facts.largest_id) {
      const std::int64_t enough = facts.default_vocab_size.value_or(*facts.largest_id + 1);
      config.fail("embedding", "missing; a " + facts.name + R"( needs one: add "embedding": {"vocab_size": )" +
                                   std::to_string(enough) + "}");
    }
    return std::nullopt;
  }
  object->refuse_unknown_keys("key of embedding", kEmbeddingKeys);
  if (std::holds_alternative<TensorInput>(facts.input)) {
    config.fail("embedding", "must be left out: a tensor input is x itself, not tokens");
  }
  EmbeddingConfig embedding;
  embedding.positions = object->word("positions", kPositionsWords).value_or(embedding.positions);
  const auto vocab_size = object->integer("vocab_size", 1, kMaxSize);
  if (!vocab_size && !facts.default_vocab_size) {
    object->fail("vocab_size", "missing, an integer of at least 1 with a " + facts.name);
  }
  embedding.vocab_size = vocab_size ? *vocab_size : *facts.default_vocab_size;
  check_vocabulary(config, *object, embedding.vocab_size, facts);
  if (embedding.positions == Positions::kSinusoidal && d_model % 2 != 0) {
    object->fail("positions", "sinusoidal needs an even d_model, got d_model " + std::to_string(d_model));
  }
  return embedding;
}

bool is_device(const std::string& word) {
  if (word == "cpu" || word == "cuda") return true;
  if (word.rfind("cuda:", 0) != 0) return false;
  const std::string digits = word.substr(5);
  const auto index = parse_int64(digits);
  return index && *index >= 0 && *index <= kMaxDeviceIndex && digits == std::to_string(*index);
}

std::string read_device(const ObjectReader& config) {
  const std::string device = config.string("device").value_or("cpu");
  if (!is_device(device)) {
    if (device == "gpu") config.fail("device", unknown_config_word("device", device, {"cpu", "cuda"}));
    config.fail("device", "unknown device " + in_quotes(device) + "; known: cpu, cuda, cuda:N with N from 0 to " +
                              std::to_string(kMaxDeviceIndex));
  }
  return device;
}

RunConfig read_config(const nlohmann::json& root, const ConfigSource& source) {
  const ObjectReader config(root, "", source);
  std::vector<std::string> known_keys = kTopKeys;
  known_keys.push_back(kSchemaKey);
  config.refuse_unknown_keys("key", known_keys);
  config.string(kSchemaKey);  // of no meaning here, but not just anything either
  InputFacts facts = read_input(config);
  const Sizes sizes = read_sizes(config, facts);

  RunConfig run;
  run.source_name = source.name;
  run.B = *sizes.B;
  run.T = *sizes.T;
  run.attention = read_attention(config, sizes);
  run.embedding = read_embedding(config, facts, run.attention.d_model);
  run.mode = config.word("mode", kModeWords).value_or(run.mode);
  run.dtype = config.word("dtype", kDtypeWords).value_or(run.dtype);
  run.device = read_device(config);
  run.seed = static_cast<std::uint64_t>(config.integer("seed", 0, kMaxSeed).value_or(0));
  if (const auto threads = config.integer("threads", 1, kMaxThreads)) run.threads = static_cast<int>(*threads);
  run.weights = config.path("weights");
  // Whether its tensors fit the layer is found out when the layer is made; here only that the file is one.
  if (run.weights) load_tensors(config, "weights", *run.weights);
  run.weights_layout = config.word("weights_layout", kWeightsLayoutWords).value_or(run.weights_layout);
  if (!run.weights && run.weights_layout != WeightsLayout::kAuto) {
    config.fail("weights_layout",
                "must be left out, or auto, where there are no weights, got " + to_string(run.weights_layout));
  }
  run.input = std::move(facts.input);
  return run;
}

RunConfig parse_with_overrides(std::string_view text, ConfigSource source, const std::vector<std::string>& set_words,
                               const std::vector<std::string>& sweep_words) {
  nlohmann::json root = parse_strict_json(text, source.name);
  const ObjectReader must_be_object(root, "", source);
  apply_set_words(root, source, set_words);
  apply_set_words(root, source, sweep_words, OverrideOption::kSweep);
  return read_config(root, source);
}

}  // namespace

RunConfig parse_config(std::string_view text, const std::string& source_name, const std::filesystem::path& base_folder,
                       const std::vector<std::string>& set_words, const std::vector<std::string>& sweep_words) {
  return parse_with_overrides(text, {source_name, base_folder}, set_words, sweep_words);
}

RunConfig load_config(const std::optional<std::string>& path, std::istream& in,
                      const std::vector<std::string>& set_words, const std::vector<std::string>& sweep_words) {
  if (!path) return parse_config("{}", "--set", "", set_words, sweep_words);
  const bool is_stream = *path == "-";
  const std::string text =
      is_stream ? read_whole_stream(in, *path, kMaxJsonBytes) : read_whole_file(*path, kMaxJsonBytes);
  const std::filesystem::path folder = is_stream ? "" : std::filesystem::path(*path).parent_path();
  return parse_config(text, *path, folder, set_words, sweep_words);
}

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  for (const std::string& key : kTopKeys) {
    if (key == "embedding") {
      for (const std::string& nested : kEmbeddingKeys) keys.push_back(key + "." + nested);
    } else if (key == "input") {
      for (const auto& kind : kInputKindWords) {
        for (const std::string& nested : input_keys(kind.second)) {
          const std::string dotted = key + "." + nested;
          if (std::find(keys.begin(), keys.end(), dotted) == keys.end()) keys.push_back(dotted);
        }
      }
    } else {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace attn
