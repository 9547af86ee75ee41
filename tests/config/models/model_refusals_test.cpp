// Models' own configs: which keys are refused and why, and which pass.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/models/model_test_support.h"

namespace attn {
namespace {

TEST(ModelRefusals, RefusesOurSizesInTheFile) {
  EXPECT_EQ(error_of(R"({"model_type": "llama", "B": 1, "T": 8})"),
            "tiny.json: /B: is no key of a llama file; give it by --set B=...");
  EXPECT_EQ(error_of(R"({"model_type": "llama", "T": 8})", {"B=1"}),
            "tiny.json: /T: is no key of a llama file; give it by --set T=...");
  EXPECT_EQ(model_error("qwen2", R"("H": 4)"), "tiny.json: /H: is no key of a qwen2 file; give it by --set H=...");
}

TEST(ModelRefusals, RefusesEveryKeyOfOursInTheFile) {
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

TEST(ModelRefusals, RefusesWhatSoundsOfAttention) {
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

TEST(ModelRefusals, PassesOverWhatHasNoPartInAttention) {
  EXPECT_EQ(model_error("llama", R"("transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
                                    "quantization_config": {"kv_cache_scheme": null, "scale": 2},
                                    "id2label": {"0": "QUERY"}, "mask_token_id": 4, "mlp_bias": true, "top_k": 50,
                                    "hidden_dropout": 0.0, "use_mrope": false)"),
            "accepted");
}

TEST(ModelRefusals, LetsFalsePassOnlyWhereTheLayerIsSoAnyway) {
  EXPECT_EQ(model_error("gpt2", R"("use_sliding_window": false)"), "accepted");
  EXPECT_NE(model_error("mistral", R"("use_sliding_window": false)"), "accepted");  // its layers have a window
  EXPECT_EQ(model_error("mistral", R"("use_sliding_window": false)", {"window=null"}), "accepted");
  EXPECT_EQ(model_error("mistral", R"("attention_bias": false)"), "accepted");
  EXPECT_NE(model_error("qwen2", R"("attention_bias": false)"), "accepted");  // its projections have one
  EXPECT_EQ(model_error("qwen2", R"("use_qk_norm": false)"), "accepted");
  EXPECT_NE(model_error("qwen3", R"("use_qk_norm": false)"), "accepted");
}

TEST(ModelRefusals, NamesTheModelsDefaultInErrors) {
  EXPECT_EQ(model_error("qwen2", R"("hidden_size": 64, "num_attention_heads": 4)"),
            "tiny.json: /H_kv (32, the default of qwen2, as the file has no /num_key_value_heads): must divide H (4), "
            "got 32");
  EXPECT_EQ(model_error("llama", R"("hidden_size": 48)"),
            "tiny.json: /H (32, the default of llama, as the file has no /num_attention_heads): must divide d_model "
            "(48) unless d_k is given, got 32");
  EXPECT_EQ(model_error("qwen2", R"("hidden_size": 64, "num_attention_heads": 4)", {"H_kv=3"}),
            "--set: /H_kv: must divide H (4), got 3");
}

TEST(ModelRefusals, NeedsTheLengthAndTheBatchFromTheCommandLine) {
  EXPECT_EQ(
      error_of(R"({"model_type": "llama"})"),
      "tiny.json: missing B, T, each an integer of at least 1; a model's own config has none: add --set B=1 --set "
      "T=8");
  const RunConfig text = parse(R"({"model_type": "bert"})", {"embedding={}", "input.kind=text", "input.text=ab"});
  EXPECT_EQ(text.T, 2);
}

TEST(ModelRefusals, RefusesUnknownModels) {
  EXPECT_EQ(model_error("t5", ""),
            "tiny.json: /model_type: unknown model type \"t5\"; known: bert, falcon, gemma2, gpt2, llama, mistral, "
            "qwen2, qwen3");
  EXPECT_EQ(error_of(R"({"model_type": 7})"), "tiny.json: /model_type: must be a string, got 7");
  EXPECT_EQ(error_of(R"({"model_type": null})"), "tiny.json: /model_type: must be a string, got null");
}

TEST(ModelRefusals, RefusesALayerThatIsNotThere) {
  EXPECT_EQ(model_error("gemma2", "", {"layer=26"}),
            "--set: /layer: must be from 0 to 25, gemma2 has 26 layers here, got 26");
  EXPECT_EQ(model_error("gemma2", "", {"layer=first"}),
            "--set: /layer: must be an integer of at least 0, got \"first\"");
  EXPECT_EQ(error_of(tiny(), {"layer=1"}).rfind("--set: /layer: unknown key \"layer\"", 0), 0U);  // ours have no layers
}

TEST(ModelRefusals, NamesTheFilesKeyInErrors) {
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

TEST(ModelRefusals, PassesOverWhatSwitchesNothingOn) {
  EXPECT_EQ(model_error("llama", R"("attn_logit_softcapping": null, "pruned_heads": {}, "use_sliding_window": false)"),
            "accepted");
  EXPECT_EQ(model_error("bert", R"("_attn_implementation": "eager", "output_attentions": true)"), "accepted");
}

TEST(ModelRefusals, WhatTheCommandLineGivesIsNotRefused) {
  EXPECT_EQ(model("llama", R"("attention_dropout": 0.25)", {"dropout=0.25"}).attention.dropout, 0.25);
  EXPECT_EQ(
      model("llama", R"("rope_scaling": {"type": "dynamic"})", {R"(rope.scaling={"kind": "none"})"}).attention.rope,
      rope(10000));
  EXPECT_EQ(model("llama", R"("partial_rotary_factor": 0.5)", {"rope=null"}).attention.rope, std::nullopt);
  EXPECT_EQ(model("llama", "", {"rope.theta=7"}).attention.rope, rope(7));
  // One key of rope does not excuse another.
  EXPECT_NE(model_error("llama", R"("rope_scaling": {"type": "dynamic"})", {"rope.theta=7"}), "accepted");
}

}  // namespace
}  // namespace attn
