#include "config/config_file.h"

#include <algorithm>
#include <istream>
#include <limits>

#include <nlohmann/json.hpp>

#include "config/config_keys.h"
#include "config/config_overrides.h"
#include "config/config_reader.h"
#include "config/input_reader.h"
#include "config/layer_reader.h"
#include "config/models/model_config.h"
#include "config/run_shape.h"
#include "core/error.h"
#include "core/text.h"
#include "files/strict_json.h"
#include "files/whole_file.h"

namespace attn {
namespace {

constexpr std::int64_t kMaxSeed = INT64_MAX;
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxDeviceIndex = 127;

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

/// A number that the scores are multiplied or divided by in the run's dtype, where it must not be infinite, nor 0, nor
/// short of digits.
void check_dtype_holds(const ObjectReader& config, const char* key, const std::optional<double>& value, Dtype dtype) {
  if (!value || dtype == Dtype::kFloat64) return;
  const bool is_half = dtype == Dtype::kFloat16;
  const double largest = is_half ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
  // 2^-14; bfloat16 has the exponents of float32.
  const double smallest = is_half ? 0.00006103515625 : static_cast<double>(std::numeric_limits<float>::min());
  if (*value > largest) {
    config.fail(key, "must be at most " + format_number(largest, 17) + ", the largest number of " + to_string(dtype) +
                         ", got " + format_number(*value, 17));
  }
  if (*value < smallest) {
    config.fail(key, "must be at least " + format_number(smallest, 17) + ", the smallest normal number of " +
                         to_string(dtype) + ", got " + format_number(*value, 17));
  }
}

RunConfig read_config(const nlohmann::json& root, const ConfigSource& source) {
  const ObjectReader config(root, "", source);
  std::vector<std::string> known_keys = kTopKeys;
  known_keys.push_back(kSchemaKey);
  config.refuse_unknown_keys("key", known_keys);
  config.string(kSchemaKey);  // of no meaning here, but not just anything either
  InputFacts facts = read_input(config);
  RunShape shape = read_run_shape(config, facts);

  RunConfig run;
  run.source_name = source.name;
  run.B = shape.B;
  run.T = shape.T;
  run.padding = shape.padding;
  run.memory_length = shape.memory_length;
  run.cache = shape.cache;
  run.attention = read_layer(config, shape);
  run.lengths = std::move(shape.lengths);
  run.embedding = read_embedding(config, facts, run.attention.d_model);
  run.mode = config.word("mode", kModeWords).value_or(run.mode);
  if (run.cache && run.mode == Mode::kTrain) {
    config.fail("mode", "must be eval with a cache: dropout would differ from call to call, got train");
  }
  run.dtype = config.word("dtype", kDtypeWords).value_or(run.dtype);
  check_dtype_holds(config, "scale", run.attention.given_scale, run.dtype);
  check_dtype_holds(config, "softcap", run.attention.softcap, run.dtype);
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

/// A model's own config becomes one in our keys first; after that there is one way to read.
RunConfig parse_with_overrides(std::string_view text, ConfigSource source, std::vector<std::string> set_words,
                               std::vector<std::string> sweep_words) {
  nlohmann::json root = parse_strict_json(text, source.name);
  const ObjectReader must_be_object(root, "", source);
  std::optional<ModelConfig> model;
  if (is_model_config(root)) {
    const auto layer = take_layer(set_words, sweep_words);
    model = translate_model_config(root, source, layer, keys_of(set_words, sweep_words));
    root = std::move(model->config);
    source.is_model_config = true;
    source.file_pointers = std::move(model->file_pointers);
  }
  apply_set_words(root, source, set_words);
  apply_set_words(root, source, sweep_words, OverrideOption::kSweep);
  RunConfig run = read_config(root, source);
  if (!model) return run;
  run.origins.lines = std::move(model->origins);
  if (model->longest && run.T > *model->longest) {
    run.origins.lines.push_back("longer than the model takes: T " + std::to_string(run.T) + ", " + model->longest_key +
                                " " + std::to_string(*model->longest));
  }
  return run;
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
  const auto add = [&keys](const std::string& parent, const std::vector<std::string>& nested) {
    for (const std::string& key : nested) {
      const std::string dotted = parent + "." + key;
      if (std::find(keys.begin(), keys.end(), dotted) == keys.end()) keys.push_back(dotted);
    }
  };
  for (const std::string& key : kTopKeys) {
    if (key == "embedding") {
      add(key, kEmbeddingKeys);
    } else if (key == "memory") {
      add(key, kMemoryKeys);
    } else if (key == "cache") {
      add(key, kCacheKeys);
    } else if (key == "mask") {
      for (const auto& kind : kMaskKindWords) add(key, mask_keys(kind.second));
      add(key, kMaskFileKeys);
    } else if (key == "rope") {
      add(key, {"theta", "style"});
      for (const auto& kind : kRopeScalingWords) add("rope.scaling", scaling_keys(kind.second));
    } else if (key == "input") {
      for (const auto& kind : kInputKindWords) add(key, input_keys(kind.second));
    } else {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace attn
