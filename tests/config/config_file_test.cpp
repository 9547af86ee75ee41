// What a config means: defaults, every key, comments, null, the ways in.
#include "config/config_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/config_test_support.h"

namespace attn {
namespace {

TEST(ConfigFile, FourSizesAreEnough) {
  const RunConfig config = parse(tiny());
  RunConfig expected;
  expected.B = 2;
  expected.T = 8;
  expected.attention.d_model = 16;
  expected.attention.H = 4;
  expected.source_name = "tiny.json";
  EXPECT_EQ(config, expected);
}

TEST(ConfigFile, DefaultsAreThoseOfTheTable) {
  EXPECT_EQ(to_json(parse(tiny())).dump(),
            R"({"B":2,"T":8,"d_model":16,"H":4,"H_kv":4,"module":"multi-head","d_k":4,"qkv":"fused","bias":false,)"
            R"("output_bias":false,"dropout":0.0,"causal":true,"window":null,"mask":null,"rope":null,"qk_norm":false,)"
            R"("qk_norm_eps":1e-06,"scale":0.5,"softcap":null,"alibi":false,"sink":false,"engine":"explicit",)"
            R"("max_seq_len":1024,"padding":null,"lengths":null,"memory":null,"cache":null,"embedding":null,)"
            R"("weights":null,"weights_layout":"auto","input":{"kind":"random"},"mode":"eval",)"
            R"("dtype":"float32","device":"cpu","seed":0,"threads":null})");
}

TEST(ConfigFile, EveryKeyIsRead) {
  const RunConfig config = parse(R"({"B": 3, "T": 5, "d_model": 24, "H": 1, "module": "single-head", "d_k": 6,
    "qkv": "separate", "bias": true, "dropout": 0.25, "causal": false, "max_seq_len": 7,
    "embedding": {"vocab_size": 11, "positions": "sinusoidal"}, "input": {"kind": "random"}, "mode": "train",
    "dtype": "bfloat16", "device": "cuda:1", "seed": 9223372036854775807, "threads": 2})");
  RunConfig expected;
  expected.B = 3;
  expected.T = 5;
  AttentionConfig& layer = expected.attention;
  layer.module = ModuleKind::kSingleHead;
  layer.d_model = 24;
  layer.H = 1;
  layer.given_d_k = 6;
  layer.qkv = QkvLayout::kSeparate;
  layer.bias = true;
  layer.dropout = 0.25;
  layer.causal = false;
  layer.max_seq_len = 7;
  expected.embedding = EmbeddingConfig{11, Positions::kSinusoidal};
  expected.mode = Mode::kTrain;
  expected.dtype = Dtype::kBFloat16;
  expected.device = "cuda:1";
  expected.seed = 9223372036854775807u;
  expected.threads = 2;
  expected.source_name = "tiny.json";
  EXPECT_EQ(config, expected);
}

TEST(ConfigFile, EveryWordIsRead) {
  EXPECT_EQ(parse(tiny(R"("qkv": "fused-per-head")")).attention.qkv, QkvLayout::kFusedPerHead);
  EXPECT_EQ(parse(tiny(R"("qkv": "fused")")).attention.qkv, QkvLayout::kFused);
  EXPECT_EQ(parse(tiny(R"("module": "multi-head")")).attention.module, ModuleKind::kMultiHead);
  EXPECT_EQ(parse(tiny(R"("dtype": "float64")")).dtype, Dtype::kFloat64);
  EXPECT_EQ(parse(tiny(R"("dtype": "float16")")).dtype, Dtype::kFloat16);
  EXPECT_EQ(parse(tiny(R"("mode": "eval")")).mode, Mode::kEval);
  EXPECT_EQ(parse(tiny(R"("embedding": {"vocab_size": 1, "positions": "none"})")).embedding->positions,
            Positions::kNone);
  for (const char* device : {"cpu", "cuda", "cuda:0", "cuda:127"}) {
    EXPECT_EQ(parse(tiny(R"("device": ")" + std::string(device) + "\"")).device, device);
  }
}

TEST(ConfigFile, NullMeansAbsent) {
  EXPECT_EQ(parse(tiny(R"("d_k": null, "max_seq_len": null, "embedding": null, "weights": null, "input": null,
                          "dropout": null, "dtype": null, "device": null, "threads": null, "seed": null)")),
            parse(tiny()));
}

TEST(ConfigFile, KeysWithAnUnderscoreAreCommentsAtEveryLevel) {
  EXPECT_EQ(parse(tiny(R"("_": 1, "_haeds": {"B": []}, "input": {"_why": null, "kind": "random"})")), parse(tiny()));
  EXPECT_EQ(parse(tiny(R"("embedding": {"_why": 3, "vocab_size": 4})")).embedding->vocab_size, 4);
}

TEST(ConfigFile, LongestSequenceGrowsWithT) {
  EXPECT_EQ(parse(R"({"B": 1, "T": 1024, "d_model": 4, "H": 2})").attention.max_seq_len, 1024);
  EXPECT_EQ(parse(R"({"B": 1, "T": 1025, "d_model": 4, "H": 2})").attention.max_seq_len, 1025);
  EXPECT_EQ(parse(tiny(R"("max_seq_len": 8)")).attention.max_seq_len, 8);
}

TEST(ConfigFile, WidthOfAHeadIsKeptOnlyWhereItSaysSomething) {
  EXPECT_EQ(parse(tiny(R"("d_k": 4)")).attention.given_d_k, std::nullopt);
  EXPECT_EQ(parse(tiny(R"("d_k": 5)")).attention.given_d_k, 5);
  EXPECT_EQ(parse(R"({"B": 1, "T": 1, "d_model": 15, "H": 4, "d_k": 3})").attention.given_d_k, 3);
}

TEST(ConfigFile, EverySizeMayBeTheLargest) {
  const RunConfig config = parse(
      R"({"B": 2147483647, "T": 2147483647, "d_model": 2147483647, "H": 1, "d_k": 1, "max_seq_len": 2147483647})");
  EXPECT_EQ(config.T, kMaxSize);
}

TEST(LoadConfig, ReadsAFileAndTakesItsPathsFromItsFolder) {
  const TemporaryFolder folder;
  folder.write("two.txt", "ab\ncd\n");
  const std::string path = folder.write(
      "text.json", R"({"d_model": 4, "H": 2, "embedding": {}, "input": {"kind": "text", "file": "./two.txt"}})");
  std::istringstream no_input;
  const RunConfig config = load_config(path, no_input, {});
  EXPECT_EQ(config.source_name, path);
  EXPECT_EQ(config.B, 2);
  EXPECT_EQ(config.T, 2);
  EXPECT_EQ(std::get<TextInput>(config.input).file, folder.path() / "two.txt");
}

TEST(LoadConfig, ReadsStandardInput) {
  std::istringstream in(tiny());
  EXPECT_EQ(load_config("-", in, {}).source_name, "-");
  std::istringstream wrong("{}");
  try {
    load_config("-", wrong, {});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "-: missing B, T, d_model, H, each an integer of at least 1");
  }
}

TEST(LoadConfig, NeedsNoFileWhenSetSaysAll) {
  std::istringstream no_input;
  const RunConfig config = load_config(std::nullopt, no_input, {"B=1", "T=3", "d_model=8", "H=2"});
  EXPECT_EQ(config.source_name, "--set");
  EXPECT_EQ(config.T, 3);
  try {
    load_config(std::nullopt, no_input, {"B=1", "H=2"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "--set: missing T, d_model, each an integer of at least 1");
  }
}

TEST(LoadConfig, AMissingOrEmptyFileIsRefusedByName) {
  const TemporaryFolder folder;
  std::istringstream no_input;
  EXPECT_THROW(load_config((folder.path() / "none.json").string(), no_input, {}), IoError);
  EXPECT_THROW(load_config(folder.path().string(), no_input, {}), IoError);
  EXPECT_THROW(load_config(folder.write("empty.json", ""), no_input, {}), ConfigError);
  EXPECT_THROW(load_config(folder.write("cut.json", R"({"B": 2, "T")"), no_input, {}), ConfigError);
}

TEST(ConfigKeys, ListsEveryKeyOnceInTheOrderOfTheTable) {
  EXPECT_EQ(config_keys(), (std::vector<std::string>{"B",
                                                     "T",
                                                     "d_model",
                                                     "H",
                                                     "H_kv",
                                                     "module",
                                                     "d_k",
                                                     "qkv",
                                                     "bias",
                                                     "output_bias",
                                                     "dropout",
                                                     "causal",
                                                     "window",
                                                     "mask.kind",
                                                     "mask.length",
                                                     "mask.lengths",
                                                     "mask.stride",
                                                     "mask.file",
                                                     "mask.name",
                                                     "rope.theta",
                                                     "rope.style",
                                                     "rope.scaling.kind",
                                                     "rope.scaling.factor",
                                                     "rope.scaling.low_freq_factor",
                                                     "rope.scaling.high_freq_factor",
                                                     "rope.scaling.original_max_seq_len",
                                                     "rope.scaling.beta_fast",
                                                     "rope.scaling.beta_slow",
                                                     "rope.scaling.attention_factor",
                                                     "qk_norm",
                                                     "qk_norm_eps",
                                                     "scale",
                                                     "softcap",
                                                     "alibi",
                                                     "sink",
                                                     "engine",
                                                     "max_seq_len",
                                                     "padding",
                                                     "lengths",
                                                     "memory.T_k",
                                                     "cache.prefill",
                                                     "cache.steps",
                                                     "cache.chunk",
                                                     "embedding.vocab_size",
                                                     "embedding.positions",
                                                     "weights",
                                                     "weights_layout",
                                                     "input.kind",
                                                     "input.file",
                                                     "input.name",
                                                     "input.text",
                                                     "input.tokenizer",
                                                     "input.ids",
                                                     "mode",
                                                     "dtype",
                                                     "device",
                                                     "seed",
                                                     "threads"}));
}

TEST(ConfigKeys, AreWhatTheEffectiveConfigHas) {
  std::vector<std::string> outermost;
  for (const std::string& key : config_keys()) {
    const std::string first = key.substr(0, key.find('.'));
    if (outermost.empty() || outermost.back() != first) outermost.push_back(first);
  }
  std::vector<std::string> written;
  const nlohmann::ordered_json json = to_json(parse(tiny()));
  for (const auto& item : json.items()) written.push_back(item.key());
  EXPECT_EQ(written, outermost);
}

}  // namespace
}  // namespace attn
