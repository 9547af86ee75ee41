// Models' own configs: what they are read as, key by key.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "config/models/model_test_support.h"

namespace attn {
namespace {

AttentionConfig separate(std::int64_t d_model, std::int64_t H, std::int64_t H_kv) {
  AttentionConfig expected;
  expected.d_model = d_model;
  expected.H = H;
  if (H_kv != H) expected.given_H_kv = H_kv;
  expected.qkv = QkvLayout::kSeparate;
  return expected;
}

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

TEST(ModelConfig, TakesTwoNamesOfOneKeyThatSayTheSame) {
  EXPECT_EQ(model("gpt2", R"("n_embd": 24, "hidden_size": 24)").attention.d_model, 24);
  EXPECT_EQ(model("gpt2", R"("n_embd": null, "hidden_size": 24)").attention.d_model, 24);
  EXPECT_EQ(model("gpt2", R"("n_embd": 24, "hidden_size": 48)", {"d_model=36"}).attention.d_model, 36);
  EXPECT_EQ(model("llama", R"("rope_theta": 5000, "rope_parameters": {"rope_theta": 5000.0})").attention.rope,
            rope(5000));
  EXPECT_EQ(model("llama", R"("rope_scaling": {"type": "default", "rope_type": "default"})").attention.rope,
            rope(10000));
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
