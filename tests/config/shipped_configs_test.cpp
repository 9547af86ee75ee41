// Every file in configs/ loads, says what it is for, and means what its name says. Runs in the repository's root.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/config_file.h"
#include "config/config_test_support.h"

namespace attn {
namespace {

/// A causal layer without bias.
AttentionConfig layer(std::int64_t d_model, std::int64_t H, QkvLayout qkv) {
  AttentionConfig config;
  config.d_model = d_model;
  config.H = H;
  config.qkv = qkv;
  return config;
}

RunConfig load(const std::string& name) {
  std::istringstream no_input;
  return load_config("configs/" + name + ".json", no_input, {});
}

TEST(ShippedConfigs, AllLoadAndReadBackAlikeAndSayWhatTheyAreFor) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.path().extension() != ".json") continue;
    ++count;
    SCOPED_TRACE(entry.path());
    const std::string name = entry.path().stem().string();
    const RunConfig config = load(name);
    EXPECT_EQ(parse_config(to_json(config).dump(), config.source_name, "/nowhere"), config);
    std::ifstream file(entry.path());
    EXPECT_FALSE(nlohmann::json::parse(file).value("_about", "").empty());
  }
  EXPECT_EQ(count, 13);
}

TEST(ShippedConfigs, TinyIsTheSmallCaseOfTheReadme) {
  const RunConfig config = load("tiny");
  EXPECT_EQ((std::vector{config.B, config.T, config.attention.d_model, config.attention.H}),
            (std::vector<std::int64_t>{2, 8, 16, 4}));
}

TEST(ShippedConfigs, CausalSelfAttentionIsTheFirstLesson) {
  const RunConfig config = load("causal_self_attention");
  EXPECT_EQ(config.B, 4);
  EXPECT_EQ(config.T, 50);
  AttentionConfig expected = layer(512, 8, QkvLayout::kFusedPerHead);
  expected.dropout = 0.1;
  EXPECT_EQ(config.attention, expected);
}

TEST(ShippedConfigs, CausalMultiHeadIsTheSecondLesson) {
  const RunConfig config = load("causal_multi_head");
  EXPECT_EQ(config.T, 17);
  AttentionConfig expected = layer(64, 4, QkvLayout::kFused);
  expected.bias = true;
  EXPECT_EQ(config.attention, expected);
}

TEST(ShippedConfigs, SingleHeadHasOneHeadAndSeparateProjections) {
  const RunConfig config = load("single_head");
  EXPECT_EQ(config.attention.module, ModuleKind::kSingleHead);
  EXPECT_EQ(config.attention.qkv, QkvLayout::kSeparate);
  EXPECT_EQ(config.attention.d_k(), 16);
}

TEST(ShippedConfigs, EncoderIsNotCausal) { EXPECT_FALSE(load("encoder").attention.causal); }

TEST(ShippedConfigs, TextIsOneSentenceOfWords) {
  const RunConfig config = load("text");
  EXPECT_EQ(config.B, 1);
  EXPECT_EQ(config.T, 19);
  EXPECT_EQ(config.embedding->vocab_size, 15);
}

TEST(ShippedConfigs, MinilmIsATrainedLayerOnARealSentence) {
  const RunConfig config = load("minilm_layer0");
  EXPECT_EQ(config.B, 1);
  EXPECT_EQ(config.T, 21);
  AttentionConfig expected = layer(384, 12, QkvLayout::kSeparate);
  expected.bias = true;
  expected.causal = false;
  EXPECT_EQ(config.attention, expected);
  EXPECT_EQ(config.weights, std::filesystem::absolute("configs/minilm_layer0.safetensors"));
  EXPECT_EQ(std::get<TensorInput>(config.input).file, config.weights);
}

TEST(ShippedConfigs, SmollmIsATrainedLayerWithRopeAndGroupedHeads) {
  const RunConfig config = load("smollm2_layer18");
  EXPECT_EQ(config.B, 1);
  EXPECT_EQ(config.T, 25);
  AttentionConfig expected = layer(576, 9, QkvLayout::kSeparate);
  expected.given_H_kv = 3;
  expected.rope = RopeConfig{100000.0, RopeStyle::kHalf, {}};
  EXPECT_EQ(config.attention, expected);
  EXPECT_EQ(config.attention.d_k(), 64);
}

TEST(ShippedConfigs, LlamaCacheGeneratesTokenByToken) {
  const RunConfig config = load("llama_cache");
  EXPECT_EQ(config.cache, (CacheConfig{6, 6, 1}));
  EXPECT_EQ(config.attention.H_kv(), 2);
  EXPECT_TRUE(config.attention.rope.has_value());
}

TEST(ShippedConfigs, MistralWindowSeesFourKeys) {
  EXPECT_EQ(load("mistral_window").attention.window, 4);
  EXPECT_TRUE(load("mistral_window").attention.causal);
}

TEST(ShippedConfigs, BertPaddedHasThreeSentencesOfDifferentLengths) {
  const RunConfig config = load("bert_padded");
  EXPECT_EQ(config.padding, PaddingSide::kRight);
  EXPECT_EQ(config.lengths, (std::vector<std::int64_t>{10, 5, 5}));
  EXPECT_EQ(config.T, 10);
  EXPECT_FALSE(config.attention.causal);
}

TEST(ShippedConfigs, Gemma2SoftcapScalesByAWidthOfItsOwn) {
  const AttentionConfig config = load("gemma2_softcap").attention;
  EXPECT_EQ(config.softcap, 50.0);
  EXPECT_DOUBLE_EQ(config.scale(), 1.0 / std::sqrt(24.0));
  EXPECT_EQ(config.d_k(), 16);
}

TEST(ShippedConfigs, CrossAttentionLooksAtAnotherSequence) {
  const RunConfig config = load("cross_attention");
  EXPECT_EQ(config.T, 5);
  EXPECT_EQ(key_length(config), 9);
  EXPECT_EQ(config.lengths, (std::vector<std::int64_t>{9, 6}));
}

}  // namespace
}  // namespace attn
