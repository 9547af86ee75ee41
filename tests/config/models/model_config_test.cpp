// Models' own configs: what they are read as, key by key, what the notes say of it, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/config_test_support.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

const Words kSizes{"B=1", "T=8"};

RunConfig load(const std::string& name, Words more = {}) {
  std::istringstream no_input;
  more.insert(more.begin(), kSizes.begin(), kSizes.end());
  return load_config("tests/data/models/" + name + ".json", no_input, more);
}

AttentionConfig layer(const std::string& name, const Words& more = {}) { return load(name, more).attention; }

/// A config of this type with more keys.
RunConfig model(const std::string& type, const std::string& more = "", Words words = {}) {
  words.insert(words.begin(), kSizes.begin(), kSizes.end());
  return parse(R"({"model_type": ")" + type + "\"" + (more.empty() ? "" : ", " + more) + "}", words);
}

std::string model_error(const std::string& type, const std::string& more, const Words& words = {}) {
  try {
    model(type, more, words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const RunConfig& config, const std::string& line) {
  return std::find(config.origins.lines.begin(), config.origins.lines.end(), line) != config.origins.lines.end();
}

AttentionConfig separate(std::int64_t d_model, std::int64_t H, std::int64_t H_kv) {
  AttentionConfig expected;
  expected.d_model = d_model;
  expected.H = H;
  if (H_kv != H) expected.given_H_kv = H_kv;
  expected.qkv = QkvLayout::kSeparate;
  return expected;
}

RopeConfig rope(double theta) { return {theta, RopeStyle::kHalf, {}}; }

TEST(ModelConfig, OfLlamaWithItsScaling) {
  AttentionConfig expected = separate(2048, 32, 8);
  expected.rope = rope(500000);
  RopeScaling& scaling = expected.rope->scaling;
  scaling.kind = RopeScalingKind::kLlama3;
  scaling.factor = 32;
  scaling.low_freq_factor = 1;
  scaling.high_freq_factor = 4;
  scaling.original_max_seq_len = 8192;
  EXPECT_EQ(layer("llama3_scaled"), expected);
}

TEST(ModelConfig, OfLlamaInThreeGenerationsOfKeys) {
  EXPECT_EQ(layer("llama_new_keys").rope, rope(100000));
  EXPECT_EQ(layer("llama_new_keys").H_kv(), 3);
  const AttentionConfig oldest = layer("llama_oldest_keys");
  EXPECT_EQ(oldest.H_kv(), 32);
  EXPECT_EQ(oldest.rope->theta, 10000);
  EXPECT_EQ(oldest.rope->scaling.kind, RopeScalingKind::kLinear);
  EXPECT_EQ(oldest.rope->scaling.factor, 4);
}

TEST(ModelConfig, OfMistralHasAWindowInEveryLayer) {
  AttentionConfig expected = separate(4096, 32, 8);
  expected.window = 4096;
  expected.rope = rope(10000);
  EXPECT_EQ(layer("mistral"), expected);
  EXPECT_EQ(layer("mistral", {"layer=31"}), expected);
  EXPECT_EQ(model("mistral", R"("sliding_window": null)").attention.window, std::nullopt);
}

TEST(ModelConfig, OfQwen2HasABiasOnAllButTheOutput) {
  AttentionConfig expected = separate(896, 14, 2);
  expected.bias = true;
  expected.given_output_bias = false;
  expected.rope = rope(1000000);
  EXPECT_EQ(layer("qwen2"), expected);
}

TEST(ModelConfig, OfQwen2HasAWindowFromOneLayerUp) {
  const std::string on = R"("use_sliding_window": true, "sliding_window": 7, "max_window_layers": 21)";
  EXPECT_EQ(model("qwen2", on, {"layer=20"}).attention.window, std::nullopt);
  EXPECT_EQ(model("qwen2", on, {"layer=21"}).attention.window, 7);
  const std::string types = R"(, "layer_types": ["sliding_attention", "full_attention"])";
  EXPECT_EQ(model("qwen2", on + types, {"layer=0"}).attention.window, 7);
  EXPECT_EQ(model("qwen2", on + types, {"layer=1"}).attention.window, std::nullopt);
  EXPECT_EQ(model_error("qwen2", R"("layer_types": ["sliding_attention"])"),
            "tiny.json: /layer_types/0: must be full_attention where use_sliding_window is not true, got "
            "\"sliding_attention\"");
  EXPECT_EQ(model_error("qwen2", on + R"(, "layer_types": ["linear_attention"])"),
            "tiny.json: /layer_types/0: must be full_attention or sliding_attention, got \"linear_attention\"");
}

TEST(ModelConfig, OfQwen3NormsQueriesAndKeysAndStretchesByYarn) {
  AttentionConfig expected = separate(1024, 16, 8);
  expected.given_d_k = 128;
  expected.qk_norm = true;
  expected.rope = rope(1000000);
  expected.rope->scaling.kind = RopeScalingKind::kYarn;
  expected.rope->scaling.factor = 4;
  expected.rope->scaling.original_max_seq_len = 32768;
  EXPECT_EQ(layer("qwen3_yarn"), expected);
}

TEST(ModelConfig, OfGemma2HasAWindowInEveryOtherLayer) {
  AttentionConfig expected = separate(2304, 8, 4);
  expected.given_d_k = 256;
  expected.softcap = 50;
  expected.rope = rope(10000);
  expected.window = 4096;
  EXPECT_EQ(layer("gemma2"), expected);  // 256 is its d_k, so the scale is 1/sqrt(d_k)
  EXPECT_EQ(layer("gemma2", {"layer=2"}), expected);
  expected.window.reset();
  EXPECT_EQ(layer("gemma2", {"layer=1"}), expected);
  EXPECT_EQ(model("gemma2", R"("query_pre_attn_scalar": 144)").attention.given_scale, 1.0 / 12);
  EXPECT_EQ(model("gemma2", R"("attn_logit_softcapping": null)").attention.softcap, std::nullopt);
}

TEST(ModelConfig, OfGpt2IsFusedWithBias) {
  AttentionConfig expected;
  expected.d_model = 768;
  expected.H = 12;
  expected.bias = true;
  expected.dropout = 0.1;
  EXPECT_EQ(layer("gpt2"), expected);
  EXPECT_EQ(model("gpt2", R"("scale_attn_weights": false)").attention.given_scale, 1.0);
  EXPECT_EQ(model("gpt2", R"("scale_attn_by_inverse_layer_idx": true)", {"layer=3"}).attention.given_scale,
            1.0 / std::sqrt(64.0) / 4.0);
}

TEST(ModelConfig, OfFalconKeepsEachKeyHeadsProjectionsTogether) {
  AttentionConfig expected = separate(8192, 128, 8);
  expected.qkv = QkvLayout::kFusedPerHead;
  expected.rope = rope(10000);
  EXPECT_EQ(layer("falcon_new"), expected);
  expected = separate(4544, 71, 1);
  expected.qkv = QkvLayout::kFusedPerHead;
  expected.rope = rope(10000);
  EXPECT_EQ(layer("falcon_multi_query"), expected);
  EXPECT_EQ(model("falcon", R"("multi_query": false)").attention.H_kv(), 71);
}

TEST(ModelConfig, OfBertIsNotCausal) {
  AttentionConfig expected = separate(768, 12, 12);
  expected.bias = true;
  expected.causal = false;
  expected.dropout = 0.1;
  EXPECT_EQ(layer("bert"), expected);
  EXPECT_TRUE(model("bert", R"("is_decoder": true)").attention.causal);
}

TEST(ModelConfig, LeavesOutWhatIsAsTheModelHasItByDefault) {
  EXPECT_EQ(model("mistral").attention.H_kv(), 8);
  EXPECT_EQ(model("qwen3").attention.d_k(), 128);
  EXPECT_EQ(model("bert").attention.d_model, 768);
  EXPECT_EQ(model("llama", R"("num_key_value_heads": null)").attention.H_kv(), 32);
}

TEST(ModelConfig, TakesRopeFromTheKindOfTheLayer) {
  const std::string keys = R"("rope_parameters": {
      "full_attention": {"rope_type": "default", "rope_theta": 1000000},
      "sliding_attention": {"rope_type": "default", "rope_theta": 5000}})";
  EXPECT_EQ(model("gemma2", keys, {"layer=0"}).attention.rope->theta, 5000);
  EXPECT_EQ(model("gemma2", keys, {"layer=1"}).attention.rope->theta, 1000000);
}

TEST(ModelConfig, StretchesFromTheLongestTextWhereNoLengthIsSaid) {
  const std::string yarn = R"("rope_scaling": {"type": "yarn", "factor": 2})";
  EXPECT_EQ(model("llama", yarn + R"(, "max_position_embeddings": 100)").attention.rope->scaling.original_max_seq_len,
            100);
  EXPECT_EQ(model("llama", yarn + R"(, "max_position_embeddings": 100, "original_max_position_embeddings": 50)")
                .attention.rope->scaling.original_max_seq_len,
            50);
}

TEST(ModelConfig, SaysWhereEachKeyIsFrom) {
  const RunConfig config = load("llama3_scaled", {"H_kv=4"});
  EXPECT_TRUE(says(config, "d_model 2048 from /hidden_size"));
  EXPECT_TRUE(says(config, "rope.theta 500000.0 from /rope_theta"));
  EXPECT_TRUE(says(config, "rope.scaling.factor 32.0 from /rope_scaling/factor"));
  EXPECT_TRUE(says(config, "rope.style half as every llama layer has it"));
  EXPECT_TRUE(says(config,
                   "not read: /architectures, /hidden_act, /intermediate_size, /mlp_bias, /pretraining_tp, "
                   "/rms_norm_eps, /tie_word_embeddings, /use_cache, /vocab_size (no part in attention)"));
  EXPECT_TRUE(says(config, "/num_hidden_layers: looked at, no key here follows from it"));
  EXPECT_TRUE(
      says(config, "max_seq_len is not taken from /max_position_embeddings, 131072: a longer T is noted, not refused"));
  EXPECT_TRUE(says(model("llama", R"("vocab_size": 8, "fine_tuned_by": "us")"),
                   "not read: /fine_tuned_by (not known here); /vocab_size (no part in attention)"));
  for (const std::string& line : config.origins.lines) EXPECT_NE(line.rfind("H_kv", 0), 0U) << line;  // by --set
  EXPECT_EQ(config.attention.H_kv(), 4);
  EXPECT_TRUE(says(model("mistral"), "H_kv 8 by mistral's default, the file has no /num_key_value_heads"));
  EXPECT_TRUE(says(load("gemma2"), "layer 0 of 0 to 25; its layers differ, another one by --set layer=N"));
  EXPECT_TRUE(says(load("gemma2", {"layer=1"}), "layer 1 of 0 to 25 by --set layer"));
  EXPECT_TRUE(parse(tiny()).origins.lines.empty());
}

TEST(ModelConfig, NamesEveryKeyOfTheFile) {
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/models")) {
    std::ifstream file(entry.path());
    const nlohmann::json json = nlohmann::json::parse(file);
    const std::vector<std::string> lines = load(entry.path().stem().string()).origins.lines;
    for (const auto& item : json.items()) {
      if (item.key() == "model_type" || item.key() == "torch_dtype") continue;  // "the model's dtype is bfloat16"
      EXPECT_TRUE(
          std::any_of(lines.begin(), lines.end(),
                      [&](const std::string& line) { return line.find("/" + item.key()) != std::string::npos; }))
          << entry.path() << ": " << item.key();
    }
  }
}

TEST(ModelConfig, SaysWhereTheFileHasNone) {
  EXPECT_TRUE(says(model("llama"), "H_kv is H by llama's default, the file has no /num_key_value_heads"));
  EXPECT_TRUE(says(model("llama"), "d_k is d_model / H by llama's default, the file has no /head_dim"));
  EXPECT_TRUE(says(model("llama"), "dropout 0.0 by llama's default, the file has no /attention_dropout"));
  EXPECT_TRUE(says(model("llama", R"("num_key_value_heads": null)"), "H_kv is H by null at /num_key_value_heads"));
  EXPECT_TRUE(says(model("gemma2"),
                   "window 4096 by gemma2's default, the file has no /sliding_window, even layers have it (itself "
                   "included)"));
  EXPECT_TRUE(says(model("gemma2"),
                   "scale 0.0625 is 1/sqrt(query_pre_attn_scalar), 256 (by gemma2's default, the file has no "
                   "/query_pre_attn_scalar)"));
  EXPECT_TRUE(says(model("gemma2", R"("query_pre_attn_scalar": 144)"),
                   "scale 0.08333333333333333 is 1/sqrt(query_pre_attn_scalar), 144 (from /query_pre_attn_scalar)"));
}

TEST(ModelConfig, SaysWhyThereIsNoWindow) {
  const std::string off = R"("use_sliding_window": false, "sliding_window": 9)";
  EXPECT_TRUE(says(model("qwen2", off),
                   "window null: use_sliding_window is false (from /use_sliding_window), so the window from "
                   "/sliding_window is off"));
  const std::string on = R"("use_sliding_window": true, "sliding_window": 9, "max_window_layers": 3)";
  EXPECT_TRUE(says(model("qwen3", on, {"layer=2"}),
                   "window null as the layer is below max_window_layers, 3 (from /max_window_layers)"));
  EXPECT_TRUE(says(model("mistral", R"("sliding_window": null)"), "window null by null at /sliding_window"));
  EXPECT_TRUE(says(model("gemma2", "", {"layer=1"}), "window null as odd layers have none"));
}

TEST(ModelConfig, SaysThatLayersDifferOnlyWhereTheyDo) {
  const std::string line = "layer 0 of 0 to 25; its layers differ, another one by --set layer=N";
  EXPECT_TRUE(says(model("gemma2"), line));
  EXPECT_FALSE(says(model("gemma2", R"("layer_types": ["full_attention", "full_attention"])"), line));
  EXPECT_TRUE(says(model("gemma2", R"("layer_types": ["full_attention", "sliding_attention"])"), line));
  EXPECT_FALSE(says(model("gemma2", R"("sliding_window": null)"), line));
}

TEST(ModelConfig, SaysWhichOfFalconsKeysCountsForItsKeyHeads) {
  EXPECT_TRUE(says(model("falcon", R"("multi_query": true, "num_kv_heads": 2)"),
                   "H_kv 1 as multi_query is true (from /multi_query), so num_kv_heads 2 does not count"));
  EXPECT_TRUE(says(model("falcon"),
                   "H_kv 1 as multi_query is true (by falcon's default, the file has no "
                   "/multi_query)"));
  EXPECT_TRUE(
      says(model("falcon", R"("multi_query": false)"), "H_kv is H as multi_query is false (from /multi_query)"));
}

TEST(ModelConfig, SaysThatTheModelsDtypeIsNotTaken) {
  const std::string line = "not taken: the model's dtype is bfloat16, the run's float32; --set dtype=bfloat16 takes it";
  EXPECT_TRUE(says(model("llama", R"("torch_dtype": "bfloat16")"), line));
  EXPECT_TRUE(says(model("llama", R"("dtype": "bfloat16")"), line));
  EXPECT_TRUE(says(model("llama", R"("torch_dtype": "torch.bfloat16", "dtype": null)"), line));
  EXPECT_FALSE(says(model("llama", R"("torch_dtype": "bfloat16")", {"dtype=float64"}), line));
  EXPECT_TRUE(
      says(model("llama", R"("dtype": "float8")"), "not taken: the model's dtype is float8, the run's float32"));
  EXPECT_TRUE(says(model("llama", R"("dtype": "float32")"), "dtype float32 as /dtype has it"));
}

TEST(ModelConfig, SaysThatTheTextIsLongerThanTheModelTakes) {
  EXPECT_TRUE(says(model("llama", R"("max_position_embeddings": 4)"),
                   "longer than the model takes: T 8, max_position_embeddings 4"));
  EXPECT_TRUE(says(model("gpt2", R"("n_positions": 7)"), "longer than the model takes: T 8, n_positions 7"));
  EXPECT_FALSE(says(model("gpt2", R"("n_positions": 8)"), "longer than the model takes: T 8, n_positions 8"));
}

TEST(ModelConfig, TakesTwoNamesOfOneKeyThatSayTheSame) {
  EXPECT_EQ(model("gpt2", R"("n_embd": 24, "hidden_size": 24)").attention.d_model, 24);
  EXPECT_EQ(model("gpt2", R"("n_embd": null, "hidden_size": 24)").attention.d_model, 24);
  EXPECT_EQ(model("gpt2", R"("n_embd": 24, "hidden_size": 48)", {"d_model=36"}).attention.d_model, 36);
  EXPECT_EQ(model("llama", R"("rope_theta": 5000, "rope_parameters": {"rope_theta": 5000.0})").attention.rope,
            rope(5000));
  EXPECT_EQ(model("llama", R"("rope_scaling": {"type": "default", "rope_type": "default"})").attention.rope,
            rope(10000));
}

TEST(ModelConfig, RefusesOurSizesInTheFile) {
  EXPECT_EQ(error_of(R"({"model_type": "llama", "B": 1, "T": 8})"),
            "tiny.json: /B: is no key of a llama file; give it by --set B=...");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "T": 8})", {"B=1"}),
            "tiny.json: /T: is no key of a llama file; give it by --set T=...");
  EXPECT_EQ(model_error("qwen2", R"("H": 4)"), "tiny.json: /H: is no key of a qwen2 file; give it by --set H=...");
}

TEST(ModelConfig, RefusesEveryKeyOfOursInTheFile) {
  const std::vector<std::string> read_in_falcon{"alibi", "bias", "dtype"};
  const std::vector<std::string> given{"B", "T"};  // by model_error
  for (const std::string& dotted : config_keys()) {
    const std::string key = dotted.substr(0, dotted.find('.'));
    if (std::find(read_in_falcon.begin(), read_in_falcon.end(), key) != read_in_falcon.end()) continue;
    if (std::find(given.begin(), given.end(), key) != given.end()) continue;
    for (const std::string value : {"false", "0", "{}", "1"}) {
      EXPECT_EQ(model_error("falcon", "\"" + key + "\": " + value),
                "tiny.json: /" + key + ": is no key of a falcon file; give it by --set " + key + "=...");
    }
    EXPECT_EQ(model_error("falcon", "\"" + key + "\": null"), "accepted") << key;
  }
  EXPECT_EQ(model_error("llama", R"("layer": 3)"),
            "tiny.json: /layer: is no key of a llama file; give it by --set "
            "layer=...");
  EXPECT_EQ(model_error("llama", R"("causal": true)", {"causal=false"}), "accepted");
}

TEST(ModelConfig, RefusesWhatSoundsOfAttention) {
  for (const std::string key : {"clip_qkv",
                                "softmax_scale",
                                "logit_scale",
                                "use_bias",
                                "qkvBias",
                                "xpos",
                                "pos_emb",
                                "position_encoding",
                                "mask_type",
                                "prefix_lm",
                                "bidirectional",
                                "n_kv",
                                "d_kv",
                                "use_mqa",
                                "norm_q",
                                "sparse",
                                "use_rope",
                                "use_rotary",
                                "scale_attn_weights",
                                "rope_interleave",
                                "n_embd",
                                "dropout_of_weights"}) {
    for (const std::string value : {"true", "false", "8"}) {
      EXPECT_EQ(model_error("llama", "\"" + key + "\": " + value),
                "tiny.json: /" + key +
                    ": is no key of llama that is known here, and by its name it may change "
                    "attention, got " +
                    value + "; rename it to _" + key + " to leave it out");
    }
    EXPECT_EQ(model_error("llama", "\"" + key + "\": null"), "accepted") << key;
  }
  EXPECT_EQ(model_error("llama", R"("text": {"parts": [{"n_kv": 2}]})"),
            "tiny.json: /text/parts/0/n_kv: is no key of llama that is known here, and by its name it may change "
            "attention, got 2; rename text to _text to leave it out");
}

TEST(ModelConfig, PassesOverWhatHasNoPartInAttention) {
  EXPECT_EQ(model_error("llama", R"("transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
                                    "quantization_config": {"kv_cache_scheme": null, "scale": 2},
                                    "id2label": {"0": "QUERY"}, "mask_token_id": 4, "mlp_bias": true, "top_k": 50,
                                    "hidden_dropout": 0.0, "use_mrope": false)"),
            "accepted");
}

TEST(ModelConfig, LetsFalsePassOnlyWhereTheLayerIsSoAnyway) {
  EXPECT_EQ(model_error("gpt2", R"("use_sliding_window": false)"), "accepted");
  EXPECT_NE(model_error("mistral", R"("use_sliding_window": false)"), "accepted");  // its layers have a window
  EXPECT_EQ(model_error("mistral", R"("use_sliding_window": false)", {"window=null"}), "accepted");
  EXPECT_EQ(model_error("mistral", R"("attention_bias": false)"), "accepted");
  EXPECT_NE(model_error("qwen2", R"("attention_bias": false)"), "accepted");  // its projections have one
  EXPECT_EQ(model_error("qwen2", R"("use_qk_norm": false)"), "accepted");
  EXPECT_NE(model_error("qwen3", R"("use_qk_norm": false)"), "accepted");
}

TEST(ModelConfig, NamesTheModelsDefaultInErrors) {
  EXPECT_EQ(model_error("qwen2", R"("hidden_size": 64, "num_attention_heads": 4)"),
            "tiny.json: /H_kv (32, the default of qwen2, as the file has no /num_key_value_heads): must divide H (4), "
            "got 32");
  EXPECT_EQ(model_error("llama", R"("hidden_size": 48)"),
            "tiny.json: /H (32, the default of llama, as the file has no /num_attention_heads): must divide d_model "
            "(48) unless d_k is given, got 32");
  EXPECT_EQ(model_error("qwen2", R"("hidden_size": 64, "num_attention_heads": 4)", {"H_kv=3"}),
            "--set: /H_kv: must divide H (4), got 3");
}

TEST(ModelConfig, OriginsArePartOfNoComparison) {
  const RunConfig config = load("llama_new_keys");
  EXPECT_FALSE(config.origins.lines.empty());
  EXPECT_EQ(parse_config(to_json(config).dump(), config.source_name, ""), config);
}

TEST(ModelConfig, NeedsTheLengthAndTheBatchFromTheCommandLine) {
  EXPECT_EQ(
      error_of(R"({"model_type": "llama"})"),
      "tiny.json: missing B, T, each an integer of at least 1; a model's own config has none: add --set B=1 --set "
      "T=8");
  const RunConfig text = parse(R"({"model_type": "bert"})", {"embedding={}", "input.kind=text", "input.text=ab"});
  EXPECT_EQ(text.T, 2);
}

TEST(ModelConfig, RefusesUnknownModels) {
  EXPECT_EQ(model_error("t5", ""),
            "tiny.json: /model_type: unknown model type \"t5\"; known: bert, falcon, gemma2, gpt2, llama, mistral, "
            "qwen2, qwen3");
  EXPECT_EQ(error_of(R"({"model_type": 7})"), "tiny.json: /model_type: must be a string, got 7");
  EXPECT_EQ(error_of(R"({"model_type": null})"), "tiny.json: /model_type: must be a string, got null");
}

TEST(ModelConfig, RefusesALayerThatIsNotThere) {
  EXPECT_EQ(model_error("gemma2", "", {"layer=26"}),
            "--set: /layer: must be from 0 to 25, gemma2 has 26 layers here, got 26");
  EXPECT_EQ(model_error("gemma2", "", {"layer=first"}),
            "--set: /layer: must be an integer of at least 0, got \"first\"");
  EXPECT_EQ(error_of(tiny(), {"layer=1"}).rfind("--set: /layer: unknown key \"layer\"", 0), 0U);  // ours have no layers
}

TEST(ModelConfig, NamesTheFilesKeyInErrors) {
  EXPECT_EQ(model_error("llama", R"("num_attention_heads": "8")"),
            "tiny.json: /H (/num_attention_heads in the file): must be an integer from 1 to 2147483647, got the string "
            "\"8\"");
  EXPECT_EQ(model_error("llama", R"("hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 3)"),
            "tiny.json: /H_kv (/num_key_value_heads in the file): must divide H (4), got 3");
  EXPECT_EQ(model_error("llama", R"("num_attention_heads": 4)", {"H=3"}),
            "--set: /H: must divide d_model (4096) unless d_k is given, got 3");
}

struct Refused {
  std::string name, type, keys, error;
};

class RefusedModels : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedModels, SayTheKeyAndTheReason) {
  EXPECT_EQ(model_error(GetParam().type, GetParam().keys), "tiny.json: " + GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, RefusedModels,
    ::testing::Values(
        Refused{"PartialRope", "llama", R"("partial_rotary_factor": 0.5)",
                "/partial_rotary_factor: must be 1: RoPE on a part of the channels only is not supported, got 0.5"},
        Refused{"PartialRopeInside", "qwen3",
                R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25})",
                "/rope_parameters/partial_rotary_factor: must be 1: RoPE on a part of the channels only is not "
                "supported, got 0.25"},
        Refused{"DynamicRope", "llama", R"("rope_scaling": {"type": "dynamic", "factor": 2})",
                "/rope_scaling/type: is not supported, known: default, linear, llama3, yarn, got \"dynamic\""},
        Refused{"LongRope", "mistral", R"("rope_scaling": {"rope_type": "longrope"})",
                "/rope_scaling/rope_type: is not supported, known: default, linear, llama3, yarn, got \"longrope\""},
        Refused{"YarnOfDeepSeek", "llama", R"("rope_scaling": {"type": "yarn", "factor": 2, "mscale": 0.7})",
                "/rope_scaling/mscale: is not supported with rope type yarn, got 0.7"},
        Refused{"YarnWithoutTruncation", "llama", R"("rope_scaling": {"type": "yarn", "factor": 2, "truncate": false})",
                "/rope_scaling/truncate: is not supported with rope type yarn, got false"},
        Refused{"LinearWithoutFactor", "llama", R"("rope_scaling": {"type": "linear"})",
                "/rope/scaling/factor: missing, a number above 0 with scaling linear"},
        Refused{"TwoScalings", "llama", R"("rope_scaling": {"type": "default"}, "rope_parameters": {"rope_theta": 1})",
                "/rope_scaling: must be left out with rope_parameters, which says the same in newer words"},
        Refused{"TwoThetas", "llama", R"("rope_theta": 5000, "rope_parameters": {"rope_theta": 7000})",
                "/rope_theta: must be as /rope_parameters/rope_theta (7000), which says the same, or left out, got "
                "5000"},
        Refused{"TwoTypes", "llama", R"("rope_scaling": {"type": "linear", "rope_type": "default", "factor": 2})",
                "/rope_scaling/type: must be as rope_type (the string \"default\"), of which it is another name, got "
                "the string \"linear\""},
        Refused{"TwoOriginalLengths", "llama",
                R"("original_max_position_embeddings": 50,
                   "rope_scaling": {"type": "yarn", "factor": 2, "original_max_position_embeddings": 60})",
                "/original_max_position_embeddings: must be as /rope_scaling/original_max_position_embeddings (60), "
                "which says the same, or left out, got 50"},
        Refused{"TwoWidths", "gpt2", R"("n_embd": 24, "hidden_size": 48)",
                "/hidden_size: must be as /n_embd (24), of which it is another name, got 48"},
        Refused{"TwoDtypes", "llama", R"("torch_dtype": "float16", "dtype": "bfloat16")",
                "/dtype: must be as /torch_dtype (float16), of which it is another name, got the string \"bfloat16\""},
        Refused{"ScalarOfNothing", "gemma2", R"("query_pre_attn_scalar": 0)",
                "/query_pre_attn_scalar: must be a number above 0, got 0.0"},
        Refused{"NegativeScalar", "gemma2", R"("query_pre_attn_scalar": -4)",
                "/query_pre_attn_scalar: must be a number above 0, got -4.0"},
        Refused{"WindowOfNothing", "mistral", R"("sliding_window": 0)",
                "/sliding_window: must be an integer from 1 to 2147483647, got 0"},
        Refused{"NegativeWindow", "gemma2", R"("sliding_window": -1)",
                "/sliding_window: must be an integer from 1 to 2147483647, got -1"},
        Refused{"NeighboursPaired", "llama", R"("rope_interleaved": true)",
                "/rope_interleaved: must be false: with true it says that neighbours are paired, which no llama layer "
                "does, got true"},
        Refused{"FalconAlibi", "falcon", R"("alibi": true)",
                "/alibi: must be false: falcon scales this bias as it scales the scores, which ours is not, got true"},
        Refused{"FalconHeads", "falcon", R"("multi_query": false, "num_kv_heads": 8)",
                "/num_kv_heads: must be num_attention_heads (71) where neither multi_query nor "
                "new_decoder_architecture is true, got 8"},
        Refused{"RelativePositions", "bert", R"("position_embedding_type": "relative_key")",
                "/position_embedding_type: must be absolute: positions that enter the scores are not supported, got "
                "\"relative_key\""},
        Refused{
            "DropoutOfWeightsOnly", "llama", R"("attention_dropout": 0.25)",
            "/attention_dropout: acts on the weights, and nothing on the output (0.25 and 0.0); here one dropout acts "
            "on both: choose one, as by --set dropout=0.25"},
        Refused{"TwoDropouts", "gpt2", R"("attn_pdrop": 0.25)",
                "/attn_pdrop: acts on the weights, and /resid_pdrop on the output (0.25 and 0.1); here "
                "one dropout acts on both: choose one, as by --set dropout=0.25"},
        Refused{"DropoutAboveOne", "llama", R"("attention_dropout": 1.5)",
                "/attention_dropout: must be a number of at least 0 and below 1, got 1.5"},
        Refused{"NegativeDropoutOfTheOutput", "gpt2", R"("resid_pdrop": -0.5)",
                "/resid_pdrop: must be a number of at least 0 and below 1, got -0.5"},
        Refused{"NoLayers", "llama", R"("num_hidden_layers": 0)",
                "/num_hidden_layers: must be an integer from 1 to 2147483647, got 0"},
        Refused{"CrossAttention", "gpt2", R"("add_cross_attention": true)",
                "/add_cross_attention: must be false: with true each layer has a second attention, to another "
                "sequence, which is not read here; rename it to _add_cross_attention for the first one alone, got "
                "true"},
        Refused{"CrossAttentionOfADecoder", "bert", R"("is_decoder": true, "add_cross_attention": true)",
                "/add_cross_attention: must be false: with true each layer has a second attention, to another "
                "sequence, which is not read here; rename it to _add_cross_attention for the first one alone, got "
                "true"},
        Refused{"BidirectionalGemma", "gemma2", R"("use_bidirectional_attention": true)",
                "/use_bidirectional_attention: must be false: its mask is not supported, got true"},
        Refused{"WindowOfAnEncoder", "mistral", R"("is_causal": false)",
                "/is_causal: must be true with a sliding window: what the window hides of later keys is not said, got "
                "false"},
        Refused{"PrunedHeads", "bert", R"("pruned_heads": {"0": [1]})",
                "/pruned_heads: is no key of bert that is known here, and by its name it may change attention, got an "
                "object; rename it to _pruned_heads to leave it out"},
        Refused{"SoftcapOfAnother", "llama", R"("attn_logit_softcapping": 30.0)",
                "/attn_logit_softcapping: is no key of llama that is known here, and by its name it may change "
                "attention, got 30.0; rename it to _attn_logit_softcapping to leave it out"}),
    [](const auto& test) { return test.param.name; });

TEST(ModelConfig, PassesOverWhatSwitchesNothingOn) {
  EXPECT_EQ(model_error("llama", R"("attn_logit_softcapping": null, "pruned_heads": {}, "use_sliding_window": false)"),
            "accepted");
  EXPECT_EQ(model_error("bert", R"("_attn_implementation": "eager", "output_attentions": true)"), "accepted");
}

TEST(ModelConfig, WhatTheCommandLineGivesIsNotRefused) {
  EXPECT_EQ(model("llama", R"("attention_dropout": 0.25)", {"dropout=0.25"}).attention.dropout, 0.25);
  EXPECT_EQ(
      model("llama", R"("rope_scaling": {"type": "dynamic"})", {R"(rope.scaling={"kind": "none"})"}).attention.rope,
      rope(10000));
  EXPECT_EQ(model("llama", R"("partial_rotary_factor": 0.5)", {"rope=null"}).attention.rope, std::nullopt);
  EXPECT_EQ(model("llama", "", {"rope.theta=7"}).attention.rope, rope(7));
  // One key of rope does not excuse another.
  EXPECT_NE(model_error("llama", R"("rope_scaling": {"type": "dynamic"})", {"rope.theta=7"}), "accepted");
}

TEST(ModelConfigFiles, AllLoadAndReadBackAlike) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/models")) {
    ++count;
    SCOPED_TRACE(entry.path());
    const RunConfig config = load(entry.path().stem().string());
    EXPECT_EQ(parse_config(to_json(config).dump(), config.source_name, ""), config);
  }
  EXPECT_EQ(count, 11);
}

}  // namespace
}  // namespace attn
