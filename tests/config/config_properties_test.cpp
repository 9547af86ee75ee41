// Promises that hold for every config: the effective config reads back alike, and no text crashes the reader.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "config/config_test_support.h"

namespace attn {
namespace {

std::int64_t pick(std::int64_t first, std::int64_t last) { return *rc::gen::inRange<std::int64_t>(first, last + 1); }

bool maybe() { return *rc::gen::arbitrary<bool>(); }

/// A text or ids; with padding the items have these lengths, else T each.
InputConfig random_input(const RunConfig& config) {
  const auto length = [&config](std::int64_t b) {
    const bool is_ragged = config.padding && !config.memory_length;
    return is_ragged ? config.lengths[static_cast<std::size_t>(b)] : config.T;
  };
  switch (pick(0, 2)) {
    case 0:
      return RandomInput{};
    case 1: {
      TokensInput tokens;
      for (std::int64_t b = 0; b < config.B; ++b) {
        auto& ids = tokens.ids.emplace_back();
        for (std::int64_t t = 0; t < length(b); ++t) ids.push_back(pick(0, 255));
      }
      return tokens;
    }
    default: {
      TextInput text;
      text.tokenizer = *rc::gen::element(Tokenizer::kBytes, Tokenizer::kWords);
      for (std::int64_t b = 0; b < config.B; ++b) {
        std::string& item = text.texts.emplace_back();
        // Punctuation is one token in both tokenizers, so that the length is as wanted.
        for (std::int64_t t = 0; t < length(b); ++t) item += *rc::gen::element('.', ',', '!', '"', '\\', '/');
      }
      return text;
    }
  }
}

double random_number() { return static_cast<double>(pick(1, 1000000)) / 1e3; }

RopeConfig random_rope() {
  RopeConfig rope;
  rope.theta = 1.5 + random_number();
  rope.style = *rc::gen::element(RopeStyle::kHalf, RopeStyle::kAdjacent);
  RopeScaling& scaling = rope.scaling;
  scaling.kind = *rc::gen::element(RopeScalingKind::kNone, RopeScalingKind::kLinear, RopeScalingKind::kLlama3,
                                   RopeScalingKind::kYarn);
  if (scaling.kind == RopeScalingKind::kNone) return rope;
  scaling.factor = random_number();
  if (scaling.kind == RopeScalingKind::kLinear) return rope;
  scaling.original_max_seq_len = pick(1, 100000);
  if (scaling.kind == RopeScalingKind::kLlama3) {
    scaling.low_freq_factor = random_number();
    scaling.high_freq_factor = scaling.low_freq_factor + random_number();
  } else {
    scaling.beta_slow = random_number();
    scaling.beta_fast = scaling.beta_slow + random_number();
    if (maybe()) scaling.attention_factor = random_number();
  }
  return rope;
}

RowsMask random_rows(std::int64_t queries, std::int64_t keys) {
  RowsMask mask{queries, keys, {}, std::nullopt, ""};
  for (std::int64_t cell = 0; cell < queries * keys; ++cell) mask.visible.push_back(maybe());
  return mask;
}

MaskConfig random_mask(std::int64_t T) {
  switch (pick(0, 4)) {
    case 0:
      return BidirectionalMask{};
    case 1:
      return PrefixMask{pick(1, 12)};
    case 2: {
      const auto first = pick(1, T);
      return first < T ? DocumentMask{{first, pick(1, T - first)}} : DocumentMask{{first}};
    }
    case 3:
      return DilatedMask{pick(1, 12)};
    default:
      return random_rows(T, T);
  }
}

/// Which keys a query may see: everything that compares positions only where there is one sequence.
void choose_visibility(RunConfig& config) {
  AttentionConfig& layer = config.attention;
  if (maybe()) {
    config.memory_length = pick(1, 9);
    layer.qkv = QkvLayout::kSeparate;
    layer.causal = false;
    if (maybe()) layer.mask = random_rows(config.T, *config.memory_length);
  } else {
    if (maybe()) layer.window = pick(1, 12);
    if (maybe()) layer.mask = random_mask(config.T);
    layer.causal = (!layer.mask || !opens_the_future(*layer.mask)) && maybe();
    if (layer.d_k() % 2 == 0 && maybe()) layer.rope = random_rope();
    layer.alibi = maybe();
    if (layer.causal && config.T > 1 && maybe()) config.cache = CacheConfig{1, 1, config.T - 1};
    if (layer.causal && config.T > 1 && maybe()) config.cache = CacheConfig{pick(1, config.T - 1), 0, 1};
    if (config.cache && config.cache->steps == 0) config.cache->steps = config.T - config.cache->prefill;
  }
  if (maybe()) {
    config.padding = *rc::gen::element(PaddingSide::kLeft, PaddingSide::kRight);
    for (std::int64_t b = 0; b < config.B; ++b) config.lengths.push_back(pick(1, key_length(config)));
  }
}

void choose_scores(AttentionConfig& layer) {
  layer.qk_norm = layer.d_k() > 1 && maybe();
  if (layer.qk_norm) layer.qk_norm_eps = random_number() * 1e-9;
  if (maybe()) layer.given_scale = random_number();
  layer.engine = *rc::gen::element(Engine::kExplicit, Engine::kSdpa);
  if (layer.engine == Engine::kSdpa) return;
  if (maybe()) layer.softcap = random_number();
  layer.sink = maybe();
}

RunConfig random_config() {
  RunConfig config;
  config.B = pick(1, 3);
  config.T = pick(1, 9);
  AttentionConfig& layer = config.attention;
  layer.module = *rc::gen::element(ModuleKind::kMultiHead, ModuleKind::kSingleHead);
  layer.H = layer.module == ModuleKind::kSingleHead ? 1 : pick(1, 6);
  if (layer.H > 1 && maybe()) layer.given_H_kv = layer.H % 2 == 0 && maybe() ? layer.H / 2 : 1;
  layer.d_model = layer.H * pick(1, 9);
  if (maybe()) layer.given_d_k = layer.d_model / layer.H + pick(1, 5);
  layer.qkv = *rc::gen::element(QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate);
  layer.bias = maybe();
  if (maybe()) layer.given_output_bias = !layer.bias;
  layer.dropout = static_cast<double>(pick(0, 999999)) / 1e6;
  choose_visibility(config);
  layer.max_seq_len = std::max(config.T, key_length(config)) + pick(0, 2000);
  choose_scores(layer);
  config.input = random_input(config);
  if (!std::holds_alternative<RandomInput>(config.input) || maybe()) {
    const auto positions = layer.d_model % 2 == 0
                               ? *rc::gen::element(Positions::kLearned, Positions::kSinusoidal, Positions::kNone)
                               : *rc::gen::element(Positions::kLearned, Positions::kNone);
    config.embedding = EmbeddingConfig{pick(256, 100000), positions};
  }
  config.mode = config.cache ? Mode::kEval : *rc::gen::element(Mode::kEval, Mode::kTrain);
  config.dtype = *rc::gen::element(Dtype::kFloat32, Dtype::kFloat64, Dtype::kBFloat16, Dtype::kFloat16);
  config.device = *rc::gen::element<std::string>("cpu", "cuda", "cuda:0", "cuda:17");
  config.seed = static_cast<std::uint64_t>(pick(0, INT64_MAX - 1));
  if (maybe()) config.threads = static_cast<int>(pick(1, 1024));
  config.source_name = "tiny.json";
  return config;
}

RC_GTEST_PROP(EffectiveConfig, ReadsBackAlike, ()) {
  const RunConfig config = random_config();
  RC_ASSERT(parse(to_json(config).dump(2)) == config);
}

/// JSON that looks like a config now and then: known keys, values of every type.
nlohmann::json random_json(int depth) {
  switch (pick(0, depth > 0 ? 9 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return pick(-1, 9);
    case 4:
      return static_cast<double>(pick(-30, 30)) / 4;
    case 5:
      return *rc::gen::arbitrary<std::uint64_t>();
    case 6:
      return *rc::gen::element<std::string>(
          "", "text", "tokens", "tensor", "random", "words", "cpu", "cuda:", "float32", "é", "separate", "learned",
          "bidirectional", "prefix", "left", "half", "yarn", "sdpa", "llama", "gemma2", "/nowhere/x.safetensors");
    case 7: {
      nlohmann::json array = nlohmann::json::array();
      for (auto n = pick(0, 3); n > 0; --n) array.push_back(random_json(depth - 1));
      return array;
    }
    default: {
      nlohmann::json object = nlohmann::json::object();
      static const std::vector<std::string> kKeys{"B",
                                                  "T",
                                                  "d_model",
                                                  "H",
                                                  "d_k",
                                                  "module",
                                                  "qkv",
                                                  "dropout",
                                                  "embedding",
                                                  "vocab_size",
                                                  "positions",
                                                  "input",
                                                  "kind",
                                                  "text",
                                                  "ids",
                                                  "file",
                                                  "tokenizer",
                                                  "device",
                                                  "dtype",
                                                  "weights",
                                                  "max_seq_len",
                                                  "_note",
                                                  "",
                                                  "nonsense",
                                                  "H_kv",
                                                  "mask",
                                                  "window",
                                                  "rope",
                                                  "theta",
                                                  "style",
                                                  "scaling",
                                                  "factor",
                                                  "padding",
                                                  "lengths",
                                                  "length",
                                                  "memory",
                                                  "T_k",
                                                  "cache",
                                                  "prefill",
                                                  "steps",
                                                  "chunk",
                                                  "scale",
                                                  "softcap",
                                                  "sink",
                                                  "engine",
                                                  "causal",
                                                  "model_type",
                                                  "hidden_size",
                                                  "num_attention_heads",
                                                  "rope_scaling",
                                                  "rope_type",
                                                  "sliding_window"};
      for (auto n = pick(0, 6); n > 0; --n) {
        object[kKeys[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(kKeys.size()) - 1))]] =
            random_json(depth - 1);
      }
      return object;
    }
  }
}

/// Accepted and then valid, or refused by an error of ours on one line.
void reads_or_refuses(const std::string& text, const std::vector<std::string>& set_words) {
  try {
    const RunConfig config = parse(text, set_words);
    RC_ASSERT(!find_fault(config.attention));
    RC_ASSERT(config.T >= 1 && config.T <= config.attention.max_seq_len && config.B >= 1);
  } catch (const Error& error) {
    RC_ASSERT(std::string(error.what()).find('\n') == std::string::npos);
  }
}

RC_GTEST_PROP(AnyJson, IsReadOrRefused, ()) {
  nlohmann::json json = random_json(3);
  if (json.is_object() && *rc::gen::arbitrary<bool>()) {
    json.update(nlohmann::json{{"B", pick(1, 3)}, {"T", pick(1, 9)}, {"d_model", pick(1, 16)}, {"H", pick(1, 3)}});
  }
  reads_or_refuses(json.dump(), {});
}

RC_GTEST_PROP(AnyJson, IsReadOrRefusedAsTheValueOfAnyKey, ()) {
  const std::string key = *rc::gen::elementOf(config_keys());
  reads_or_refuses(tiny(), {key + "=" + random_json(2).dump()});
}

RC_GTEST_PROP(AnyModelConfig, IsReadOrRefused, ()) {
  nlohmann::json json = random_json(2);
  if (!json.is_object()) json = nlohmann::json::object();
  json["model_type"] = *rc::gen::element<std::string>("bert", "falcon", "gemma2", "gpt2", "llama", "mistral", "qwen2");
  static const std::vector<std::string> kTheirKeys{"hidden_size",
                                                   "num_attention_heads",
                                                   "num_key_value_heads",
                                                   "head_dim",
                                                   "rope_theta",
                                                   "rope_type",
                                                   "rope_scaling",
                                                   "rope_parameters",
                                                   "sliding_window",
                                                   "layer_types",
                                                   "n_embd",
                                                   "attn_pdrop",
                                                   "num_hidden_layers",
                                                   "attention_bias",
                                                   "use_sliding_window",
                                                   "is_causal",
                                                   "query_pre_attn_scalar",
                                                   "num_kv_heads",
                                                   "multi_query",
                                                   "scale_attn_by_inverse_layer_idx"};
  for (auto n = pick(0, 4); n > 0; --n) json[*rc::gen::elementOf(kTheirKeys)] = random_json(2);
  reads_or_refuses(json.dump(), {"B=1", "T=4"});
}

RC_GTEST_PROP(AnyBytes, AreReadOrRefused, ()) {
  reads_or_refuses(*rc::gen::string<std::string>(), {*rc::gen::string<std::string>()});
}

RC_GTEST_PROP(DamagedConfig, IsReadOrRefused, ()) {
  std::string text = to_json(random_config()).dump();
  for (auto n = pick(1, 4); n > 0; --n) {
    text[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(text.size()) - 1))] = *rc::gen::arbitrary<char>();
  }
  reads_or_refuses(text, {});
}

}  // namespace
}  // namespace attn
