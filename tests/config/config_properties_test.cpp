// Promises that hold for every config: the effective config reads back alike, and no text crashes the reader.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "config/config_test_support.h"

namespace attn {
namespace {

std::int64_t pick(std::int64_t first, std::int64_t last) { return *rc::gen::inRange<std::int64_t>(first, last + 1); }

InputConfig random_input(std::int64_t B, std::int64_t T) {
  switch (pick(0, 2)) {
    case 0:
      return RandomInput{};
    case 1: {
      TokensInput tokens;
      for (std::int64_t b = 0; b < B; ++b) {
        auto& ids = tokens.ids.emplace_back();
        for (std::int64_t t = 0; t < T; ++t) ids.push_back(pick(0, 255));
      }
      return tokens;
    }
    default: {
      TextInput text;
      text.tokenizer = *rc::gen::element(Tokenizer::kBytes, Tokenizer::kWords);
      for (std::int64_t b = 0; b < B; ++b) {
        std::string& item = text.texts.emplace_back();
        // Punctuation is one token in both tokenizers, so that T is as wanted.
        for (std::int64_t t = 0; t < T; ++t) item += *rc::gen::element('.', ',', '!', '"', '\\', '/');
      }
      return text;
    }
  }
}

RunConfig random_config() {
  RunConfig config;
  config.B = pick(1, 3);
  config.T = pick(1, 9);
  AttentionConfig& attention = config.attention;
  attention.module = *rc::gen::element(ModuleKind::kMultiHead, ModuleKind::kSingleHead);
  attention.H = attention.module == ModuleKind::kSingleHead ? 1 : pick(1, 5);
  attention.d_model = attention.H * pick(1, 9);
  if (*rc::gen::arbitrary<bool>()) attention.given_d_k = attention.d_model / attention.H + pick(1, 5);
  attention.qkv = *rc::gen::element(QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate);
  attention.bias = *rc::gen::arbitrary<bool>();
  attention.causal = *rc::gen::arbitrary<bool>();
  attention.dropout = static_cast<double>(pick(0, 999999)) / 1e6;
  attention.max_seq_len = config.T + pick(0, 2000);
  config.input = random_input(config.B, config.T);
  if (!std::holds_alternative<RandomInput>(config.input) || *rc::gen::arbitrary<bool>()) {
    const auto positions = attention.d_model % 2 == 0
                               ? *rc::gen::element(Positions::kLearned, Positions::kSinusoidal, Positions::kNone)
                               : *rc::gen::element(Positions::kLearned, Positions::kNone);
    config.embedding = EmbeddingConfig{pick(256, 100000), positions};
  }
  config.mode = *rc::gen::element(Mode::kEval, Mode::kTrain);
  config.dtype = *rc::gen::element(Dtype::kFloat32, Dtype::kFloat64, Dtype::kBFloat16, Dtype::kFloat16);
  config.device = *rc::gen::element<std::string>("cpu", "cuda", "cuda:0", "cuda:17");
  config.seed = static_cast<std::uint64_t>(pick(0, INT64_MAX - 1));
  if (*rc::gen::arbitrary<bool>()) config.threads = static_cast<int>(pick(1, 1024));
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
      return *rc::gen::element<std::string>("", "text", "tokens", "tensor", "random", "words", "cpu",
                                            "cuda:", "float32", "é", "separate", "learned", "/nowhere/x.safetensors");
    case 7: {
      nlohmann::json array = nlohmann::json::array();
      for (auto n = pick(0, 3); n > 0; --n) array.push_back(random_json(depth - 1));
      return array;
    }
    default: {
      nlohmann::json object = nlohmann::json::object();
      static const std::vector<std::string> kKeys{
          "B",         "T",          "d_model",   "H",       "d_k",         "module", "qkv", "dropout",
          "embedding", "vocab_size", "positions", "input",   "kind",        "text",   "ids", "file",
          "tokenizer", "device",     "dtype",     "weights", "max_seq_len", "_note",  "",    "nonsense"};
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
