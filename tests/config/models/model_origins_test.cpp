// Models' own configs: what is said of every key, taken or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "config/models/model_test_support.h"

namespace attn {
namespace {

bool says(const RunConfig& config, const std::string& line) {
  return std::find(config.origins.lines.begin(), config.origins.lines.end(), line) != config.origins.lines.end();
}

TEST(ModelOrigins, SaysWhereEachKeyIsFrom) {
  const RunConfig config = load("llama3_scaled", {"H_kv=4"});
  EXPECT_TRUE(says(config, "d_model 2048 from /hidden_size"));
  EXPECT_TRUE(says(config, "rope.theta 500000.0 from /rope_theta"));
  EXPECT_TRUE(says(config, "rope.scaling.factor 32.0 from /rope_scaling/factor"));
  EXPECT_TRUE(says(config, "rope.style half as every llama layer has it"));
  EXPECT_TRUE(says(config,
                   "not read: /architectures, /hidden_act, /intermediate_size, /mlp_bias, /pretraining_tp, "
                   "/rms_norm_eps, /tie_word_embeddings, /use_cache, /vocab_size (no part in attention)"));
  EXPECT_TRUE(says(config, "/num_hidden_layers: looked at, no value here is taken from it"));
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

TEST(ModelOrigins, NamesEveryKeyOfTheFile) {
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

TEST(ModelOrigins, SaysWhereTheFileHasNone) {
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

TEST(ModelOrigins, SaysWhyThereIsNoWindow) {
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

TEST(ModelOrigins, SaysThatLayersDifferOnlyWhereTheyDo) {
  const std::string line = "layer 0 of 0 to 25; its layers differ, another one by --set layer=N";
  EXPECT_TRUE(says(model("gemma2"), line));
  EXPECT_FALSE(says(model("gemma2", R"("layer_types": ["full_attention", "full_attention"])"), line));
  EXPECT_TRUE(says(model("gemma2", R"("layer_types": ["full_attention", "sliding_attention"])"), line));
  EXPECT_FALSE(says(model("gemma2", R"("sliding_window": null)"), line));
}

TEST(ModelOrigins, SaysWhichOfFalconsKeysCountsForItsKeyHeads) {
  EXPECT_TRUE(says(model("falcon", R"("multi_query": true, "num_kv_heads": 2)"),
                   "H_kv 1 as multi_query is true (from /multi_query), so num_kv_heads 2 does not count"));
  EXPECT_TRUE(says(model("falcon"),
                   "H_kv 1 as multi_query is true (by falcon's default, the file has no "
                   "/multi_query)"));
  EXPECT_TRUE(
      says(model("falcon", R"("multi_query": false)"), "H_kv is H as multi_query is false (from /multi_query)"));
}

TEST(ModelOrigins, SaysThatTheModelsDtypeIsNotTaken) {
  const std::string line = "not taken: the model's dtype is bfloat16, the run's float32; --set dtype=bfloat16 takes it";
  EXPECT_TRUE(says(model("llama", R"("torch_dtype": "bfloat16")"), line));
  EXPECT_TRUE(says(model("llama", R"("dtype": "bfloat16")"), line));
  EXPECT_TRUE(says(model("llama", R"("torch_dtype": "torch.bfloat16", "dtype": null)"), line));
  EXPECT_FALSE(says(model("llama", R"("torch_dtype": "bfloat16")", {"dtype=float64"}), line));
  EXPECT_TRUE(
      says(model("llama", R"("dtype": "float8")"), "not taken: the model's dtype is float8, the run's float32"));
  EXPECT_TRUE(says(model("llama", R"("dtype": "float32")"), "dtype float32 as /dtype has it"));
}

TEST(ModelOrigins, SaysThatTheTextIsLongerThanTheModelTakes) {
  EXPECT_TRUE(says(model("llama", R"("max_position_embeddings": 4)"),
                   "longer than the model takes: T 8, max_position_embeddings 4"));
  EXPECT_TRUE(says(model("gpt2", R"("n_positions": 7)"), "longer than the model takes: T 8, n_positions 7"));
  EXPECT_FALSE(says(model("gpt2", R"("n_positions": 8)"), "longer than the model takes: T 8, n_positions 8"));
}

TEST(ModelOrigins, OriginsArePartOfNoComparison) {
  const RunConfig config = load("llama_new_keys");
  EXPECT_FALSE(config.origins.lines.empty());
  EXPECT_EQ(parse_config(to_json(config).dump(), config.source_name, ""), config);
}

}  // namespace
}  // namespace attn
