#include "config/run_shape.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "config/config_keys.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

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

bool is_ragged(const InputFacts& facts) {
  return std::any_of(facts.lengths.begin(), facts.lengths.end(), [&](std::int64_t n) { return n != *facts.T; });
}

/// T of the input is that of its longest item; with padding all may be filled up further.
void check_length(const ObjectReader& config, const InputFacts& facts, std::optional<std::int64_t> given_T,
                  bool is_filled_up) {
  if (!is_filled_up) {
    if (is_ragged(facts)) {
      config.fail("padding", "missing; the items of the " + facts.name + " have " + join_first(facts.lengths) +
                                 " tokens: say at which side the shorter ones are filled up, left or right");
    }
    refuse_contradiction(config, "T", given_T, facts.T, facts.name);
  } else if (given_T && *given_T < *facts.T) {
    config.fail("T", "must be at least " + std::to_string(*facts.T) + ", the longest item of the " + facts.name +
                         ", or left out, got " + std::to_string(*given_T));
  }
}

Sizes read_sizes(const ObjectReader& config, const InputFacts& facts, bool is_filled_up) {
  const Sizes given{config.integer("B", 1, kMaxSize), config.integer("T", 1, kMaxSize),
                    config.integer("d_model", 1, kMaxSize), config.integer("H", 1, kMaxSize)};
  refuse_contradiction(config, "B", given.B, facts.B, facts.name);
  check_length(config, facts, given.T, is_filled_up);
  refuse_contradiction(config, "d_model", given.d_model, facts.d_model, facts.name);
  const Sizes sizes{given.B ? given.B : facts.B, given.T ? given.T : facts.T,
                    given.d_model ? given.d_model : facts.d_model, given.H};
  std::vector<std::string> missing;
  if (!sizes.B) missing.emplace_back("B");
  if (!sizes.T) missing.emplace_back("T");
  if (!sizes.d_model) missing.emplace_back("d_model");
  if (!sizes.H) missing.emplace_back("H");
  if (!missing.empty()) {
    throw ConfigError(
        config.source().where("") + ": missing " + join(missing) + (missing.size() == 1 ? ", an" : ", each an") +
        " integer of at least 1" +
        (config.source().is_model_config ? "; a model's own config has none: add --set B=1 --set T=8" : ""));
  }
  return sizes;
}

std::optional<std::int64_t> read_memory(const ObjectReader& config) {
  const std::optional<ObjectReader> memory = config.object("memory");
  if (!memory) return std::nullopt;
  memory->refuse_unknown_keys("key of memory", kMemoryKeys);
  const auto T_k = memory->integer("T_k", 1, kMaxSize);
  if (!T_k) memory->fail("T_k", "missing, an integer of at least 1: how many tokens the memory has");
  return T_k;
}

/// `lengths` as it is given: B integers from 1 to `longest`.
std::optional<std::vector<std::int64_t>> read_lengths(const ObjectReader& config, const RunShape& shape) {
  const nlohmann::json* value = config.find("lengths");
  if (value == nullptr) return std::nullopt;
  if (!value->is_array() || static_cast<std::int64_t>(value->size()) != shape.B) {
    config.fail("lengths", "must be an array of B (" + std::to_string(shape.B) + ") integers, got " +
                               (value->is_array() ? std::to_string(value->size()) : describe(*value)));
  }
  std::vector<std::int64_t> lengths;
  for (std::size_t b = 0; b < value->size(); ++b) {
    const auto length = as_integer((*value)[b], 1, shape.key_length());
    if (!length) {
      throw ConfigError(config.source().where(config.pointer("lengths") + "/" + std::to_string(b)) + ": " +
                        not_an_integer((*value)[b], 1, shape.key_length()));
    }
    lengths.push_back(*length);
  }
  return lengths;
}

void read_padding(const ObjectReader& config, const InputFacts& facts, RunShape& shape) {
  const auto given = read_lengths(config, shape);
  if (!shape.padding) {
    if (given) config.fail("padding", "missing; lengths need a side that is filled up: left or right");
    return;
  }
  // Padding hides keys, and with a memory the keys are the memory's, of which the input says nothing.
  const bool said_by_input = !facts.lengths.empty() && !shape.memory_length;
  if (said_by_input && given && *given != facts.lengths) {
    config.fail("lengths", "must be " + join_first(facts.lengths) + " as the " + facts.name +
                               " has them, or left out, got " + join_first(*given));
  }
  if (!said_by_input && !given) {
    config.fail("lengths", "missing with padding: an array of B (" + std::to_string(shape.B) + ") integers, how many " +
                               (shape.memory_length ? "tokens of the memory" : "tokens") + " each item has");
  }
  shape.lengths = said_by_input ? facts.lengths : *given;
}

std::optional<CacheConfig> read_cache(const ObjectReader& config, std::int64_t T) {
  const std::optional<ObjectReader> object = config.object("cache");
  if (!object) return std::nullopt;
  object->refuse_unknown_keys("key of cache", kCacheKeys);
  const auto prefill = object->integer("prefill", 1, kMaxSize);
  const auto steps = object->integer("steps", 1, kMaxSize);
  if (!prefill) object->fail("prefill", "missing, an integer of at least 1: how many tokens the first call has");
  if (!steps) object->fail("steps", "missing, an integer of at least 1: how many calls follow the first");
  const CacheConfig cache{*prefill, *steps, object->integer("chunk", 1, kMaxSize).value_or(1)};
  if (cache.prefill + cache.steps * cache.chunk != T) {
    config.fail("cache", "prefill + steps * chunk must be T (" + std::to_string(T) + "), got " +
                             std::to_string(cache.prefill) + " + " + std::to_string(cache.steps) + " * " +
                             std::to_string(cache.chunk) + " = " +
                             std::to_string(cache.prefill + cache.steps * cache.chunk));
  }
  return cache;
}

}  // namespace

RunShape read_run_shape(const ObjectReader& config, const InputFacts& facts) {
  RunShape shape;
  shape.padding = config.word("padding", kPaddingWords);
  shape.memory_length = read_memory(config);
  if (shape.memory_length && is_ragged(facts)) {
    config.fail("memory",
                "must be left out with items of different lengths: padding hides keys, which come from the "
                "memory, so the queries would not be filled up");
  }
  const Sizes sizes = read_sizes(config, facts, shape.padding && !facts.lengths.empty() && !shape.memory_length);
  shape.B = *sizes.B;
  shape.T = *sizes.T;
  shape.d_model = *sizes.d_model;
  shape.H = *sizes.H;
  read_padding(config, facts, shape);
  shape.cache = read_cache(config, shape.T);
  return shape;
}

}  // namespace attn
