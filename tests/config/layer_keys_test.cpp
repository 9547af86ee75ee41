// The keys that describe a layer beyond its sizes: what each is read as, its default, and every refusal.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/config_test_support.h"

namespace attn {
namespace {

AttentionConfig layer(const std::string& more) { return parse(tiny(more)).attention; }

TEST(GroupedHeads, AreReadAndKeptOnlyWhereTheySaySomething) {
  EXPECT_EQ(layer(R"("H_kv": 2)").given_H_kv, 2);
  EXPECT_EQ(layer(R"("H_kv": 2)").heads_a_group(), 2);
  EXPECT_EQ(layer(R"("H_kv": 4)").given_H_kv, std::nullopt);
  EXPECT_EQ(layer("").H_kv(), 4);
  EXPECT_EQ(error_of(tiny(R"("H_kv": 3)")), "tiny.json: /H_kv: must divide H (4), got 3");
  EXPECT_EQ(error_of(tiny(R"("H_kv": 8)")), "tiny.json: /H_kv: must divide H (4), got 8");
  EXPECT_EQ(error_of(tiny(R"("H_kv": 0)")), "tiny.json: /H_kv: must be an integer from 1 to 2147483647, got 0");
  EXPECT_EQ(error_of(R"({"B": 1, "T": 1, "d_model": 4, "H": 1, "module": "single-head", "H_kv": 2})"),
            "tiny.json: /H_kv: must divide H (1), got 2");
}

TEST(OutputBias, FollowsBiasUnlessItIsGiven) {
  EXPECT_FALSE(layer("").output_bias());
  EXPECT_TRUE(layer(R"("bias": true)").output_bias());
  EXPECT_FALSE(layer(R"("bias": true, "output_bias": false)").output_bias());
  EXPECT_EQ(layer(R"("bias": true, "output_bias": true)"), layer(R"("bias": true)"));
  EXPECT_EQ(error_of(tiny(R"("output_bias": 1)")), "tiny.json: /output_bias: must be true or false, got 1");
}

TEST(Rope, IsReadWithItsDefaults) {
  const auto rope = layer(R"("rope": {"style": "half"})").rope;
  ASSERT_TRUE(rope.has_value());
  EXPECT_EQ(*rope, (RopeConfig{10000.0, RopeStyle::kHalf, {}}));
  EXPECT_EQ(layer(R"("rope": null)").rope, std::nullopt);
  EXPECT_EQ(layer(R"("rope": {"style": "adjacent", "theta": 5e5, "scaling": null})").rope,
            (RopeConfig{500000.0, RopeStyle::kAdjacent, {}}));
  EXPECT_EQ(layer(R"("rope": {"style": "half", "scaling": {"kind": "none"}})").rope, rope);
}

TEST(Rope, ScalingIsReadByItsKind) {
  const auto scaling = [](const std::string& keys) {
    return layer(R"("rope": {"style": "half", "scaling": {)" + keys + "}}").rope->scaling;
  };
  RopeScaling expected;
  expected.kind = RopeScalingKind::kLinear;
  expected.factor = 4;
  EXPECT_EQ(scaling(R"("kind": "linear", "factor": 4)"), expected);

  expected.kind = RopeScalingKind::kLlama3;
  expected.original_max_seq_len = 64;
  EXPECT_EQ(scaling(R"("kind": "llama3", "factor": 4, "original_max_seq_len": 64)"), expected);
  expected.low_freq_factor = 2;
  expected.high_freq_factor = 8;
  EXPECT_EQ(scaling(R"("kind": "llama3", "factor": 4, "original_max_seq_len": 64, "low_freq_factor": 2,
                       "high_freq_factor": 8)"),
            expected);

  expected = {};
  expected.kind = RopeScalingKind::kYarn;
  expected.factor = 4;
  expected.original_max_seq_len = 64;
  EXPECT_EQ(scaling(R"("kind": "yarn", "factor": 4, "original_max_seq_len": 64)"), expected);
  expected.beta_fast = 16;
  expected.beta_slow = 2;
  expected.attention_factor = 1.25;
  EXPECT_EQ(scaling(R"("kind": "yarn", "factor": 4, "original_max_seq_len": 64, "beta_fast": 16, "beta_slow": 2,
                       "attention_factor": 1.25)"),
            expected);
}

std::string rope_error(const std::string& keys) { return error_of(tiny(R"("rope": {)" + keys + "}")); }
std::string scaling_error(const std::string& keys) {
  return rope_error(R"("style": "half", "scaling": {)" + keys + "}");
}

TEST(Rope, StyleHasNoDefault) {
  EXPECT_EQ(rope_error(""),
            "tiny.json: /rope/style: missing, it has no default: half pairs channel c with c + d_k/2 (Llama, Qwen, "
            "Gemma as Hugging Face keeps them), adjacent pairs 2c with 2c + 1 (Llama as Meta keeps it, GPT-J)");
  EXPECT_EQ(rope_error(R"("style": "interleaved")"),
            R"(tiny.json: /rope/style: unknown style "interleaved"; did you mean "adjacent"?)");
}

/// BUG_CASES R34: a base that is missing, zero or negative, and an odd width, fail far from their cause elsewhere.
TEST(Rope, RefusesABaseThatIsNoneAndAnOddWidth) {
  EXPECT_EQ(rope_error(R"("style": "half", "theta": 0)"),
            "tiny.json: /rope/theta: must be a finite number above 0, got 0");
  EXPECT_EQ(rope_error(R"("style": "half", "theta": -10000)"),
            "tiny.json: /rope/theta: must be a finite number above 0, got -10000");
  EXPECT_EQ(rope_error(R"("style": "half", "theta": "10000")"),
            R"(tiny.json: /rope/theta: must be a number, got the string "10000")");
  EXPECT_EQ(error_of(R"({"B": 1, "T": 1, "d_model": 9, "H": 1, "rope": {"style": "half"}})"),
            "tiny.json: /rope: turns pairs of channels, so it needs an even d_k, got 9");
  EXPECT_EQ(to_json(parse(tiny(R"("rope": {"style": "half"})")))["rope"]["theta"], 10000.0);  // the value used is shown
}

TEST(Rope, RefusesUnknownKeysByTheKindOfScaling) {
  EXPECT_EQ(rope_error(R"("style": "half", "tehta": 1)"),
            R"(tiny.json: /rope/tehta: unknown key of rope "tehta"; did you mean "theta"?)");
  EXPECT_EQ(
      scaling_error(R"("kind": "linear", "factor": 2, "beta_fast": 3)"),
      R"(tiny.json: /rope/scaling/beta_fast: unknown key of a scaling of kind linear "beta_fast"; known: kind, factor)");
  EXPECT_EQ(scaling_error(R"("kind": "none", "factor": 2)"),
            R"(tiny.json: /rope/scaling/factor: unknown key of a scaling of kind none "factor"; known: kind)");
  EXPECT_EQ(scaling_error(R"("kind": "dynamic")"),
            R"(tiny.json: /rope/scaling/kind: unknown kind "dynamic"; known: none, linear, llama3, yarn)");
  EXPECT_EQ(scaling_error(R"("factor": 2)"),
            "tiny.json: /rope/scaling/kind: missing; known: none, linear, llama3, yarn");
}

TEST(Rope, RefusesScalingWithoutItsNumbers) {
  EXPECT_EQ(scaling_error(R"("kind": "linear")"),
            "tiny.json: /rope/scaling/factor: missing, a number above 0 with scaling linear");
  EXPECT_EQ(scaling_error(R"("kind": "llama3", "original_max_seq_len": 8)"),
            "tiny.json: /rope/scaling/factor: missing, a number above 0 with scaling llama3");
  EXPECT_EQ(scaling_error(R"("kind": "yarn", "factor": 8)"),
            "tiny.json: /rope/scaling/original_max_seq_len: missing, an integer of at least 1 with scaling yarn: the "
            "length that the model was trained with");
}

TEST(Rope, RefusesNumbersOutOfRange) {
  const std::string llama3 = R"("kind": "llama3", "factor": 8, "original_max_seq_len": 8)";
  const std::string yarn = R"("kind": "yarn", "factor": 8, "original_max_seq_len": 8)";
  const std::string positive = "must be a finite number above 0, got ";
  EXPECT_EQ(scaling_error(R"("kind": "linear", "factor": 0)"), "tiny.json: /rope/scaling/factor: " + positive + "0");
  EXPECT_EQ(scaling_error(R"("kind": "llama3", "factor": 8, "original_max_seq_len": 0)"),
            "tiny.json: /rope/scaling/original_max_seq_len: must be an integer from 1 to 2147483647, got 0");
  EXPECT_EQ(scaling_error(llama3 + R"(, "low_freq_factor": -1)"),
            "tiny.json: /rope/scaling/low_freq_factor: " + positive + "-1");
  EXPECT_EQ(scaling_error(llama3 + R"(, "low_freq_factor": 4)"),
            "tiny.json: /rope/scaling/high_freq_factor: must be a finite number above low_freq_factor (4), got 4");
  EXPECT_EQ(scaling_error(yarn + R"(, "beta_slow": 0)"), "tiny.json: /rope/scaling/beta_slow: " + positive + "0");
  EXPECT_EQ(scaling_error(yarn + R"(, "beta_fast": 0.5)"),
            "tiny.json: /rope/scaling/beta_fast: must be a finite number above beta_slow (1), got 0.5");
  EXPECT_EQ(scaling_error(yarn + R"(, "attention_factor": 0)"),
            "tiny.json: /rope/scaling/attention_factor: " + positive + "0");
  EXPECT_EQ(rope_error(R"("style": "half", "theta": 1, "scaling": {)" + yarn + "}"),
            "tiny.json: /rope/theta: must be above 1 with yarn, which counts turns by its logarithm, got 1");
}

TEST(ScoreChanges, AreRead) {
  const AttentionConfig read =
      layer(R"("qk_norm": true, "qk_norm_eps": 1e-5, "scale": 0.1, "softcap": 50, "alibi": true,
                                        "sink": true)");
  EXPECT_TRUE(read.qk_norm);
  EXPECT_EQ(read.qk_norm_eps, 1e-5);
  EXPECT_EQ(read.given_scale, 0.1);
  EXPECT_EQ(read.softcap, 50.0);
  EXPECT_TRUE(read.alibi);
  EXPECT_TRUE(read.sink);
  EXPECT_EQ(layer(R"("engine": "sdpa")").engine, Engine::kSdpa);
}

TEST(ScoreChanges, ScaleIsKeptOnlyWhereItSaysSomething) {
  EXPECT_EQ(layer(R"("scale": 0.5)").given_scale, std::nullopt);  // d_k is 4
  EXPECT_EQ(layer(R"("scale": 0.25)").given_scale, 0.25);
  EXPECT_EQ(layer(R"("d_k": 16, "scale": 0.5)").given_scale, 0.5);
}

TEST(ScoreChanges, RefuseNumbersOutOfRange) {
  const std::string positive = "must be a finite number above 0, got ";
  EXPECT_EQ(error_of(tiny(R"("scale": 0)")), "tiny.json: /scale: " + positive + "0");
  EXPECT_EQ(error_of(tiny(R"("softcap": -50)")), "tiny.json: /softcap: " + positive + "-50");
  EXPECT_EQ(error_of(tiny(R"("qk_norm": true, "qk_norm_eps": 0)")),
            "tiny.json: /qk_norm_eps: must be a finite number from 1e-16 on, got 0");
  EXPECT_EQ(error_of(tiny(R"("alibi": "yes")")), R"(tiny.json: /alibi: must be true or false, got the string "yes")");
}

TEST(ScoreChanges, ANormsEpsNeedsTheNorm) {
  const std::string needs_norm = "/qk_norm_eps: needs qk_norm true, got qk_norm false";
  EXPECT_EQ(error_of(tiny(R"("qk_norm_eps": 0.5)")), "tiny.json: " + needs_norm);
  EXPECT_EQ(error_of(tiny(), {"qk_norm_eps=0.5"}), "--set: " + needs_norm);
  EXPECT_EQ(error_of(tiny(R"("qk_norm": false, "qk_norm_eps": 1e-6)")), "accepted");  // as the effective config has it
  EXPECT_EQ(parse(to_json(parse(tiny())).dump()).attention, parse(tiny()).attention);
}

TEST(Cache, NamesTheMaskThatOpensTheFuture) {
  EXPECT_EQ(error_of(tiny(R"("cache": {"prefill": 4, "steps": 4}, "mask": {"kind": "prefix", "length": 3})")),
            "tiny.json: /cache: must be left out with a prefix mask: with it earlier tokens look at later ones, which "
            "are not there yet");
  EXPECT_EQ(error_of(tiny(R"("cache": {"prefill": 4, "steps": 4}, "causal": false)")),
            "tiny.json: /cache: needs causal true: without it earlier tokens look at later ones, which are not there "
            "yet, got causal false");
}

TEST(Engine, SdpaIsRefusedWithWhatItHasNot) {
  EXPECT_EQ(error_of(tiny(R"("engine": "sdpa", "softcap": 50)")),
            "tiny.json: /engine: must be explicit with softcap: scaled_dot_product_attention has none, got sdpa");
  EXPECT_EQ(error_of(tiny(R"("engine": "sdpa", "sink": true)")),
            "tiny.json: /engine: must be explicit with sink: scaled_dot_product_attention has none, got sdpa");
  EXPECT_EQ(error_of(tiny(R"("engine": "sdpa", "alibi": true, "scale": 0.1, "window": 3)")), "accepted");
  EXPECT_EQ(error_of(tiny(R"("engine": "eager")")),
            R"(tiny.json: /engine: unknown engine "eager"; did you mean "explicit"?)");
}

TEST(Window, IsAtLeastOneKey) {
  EXPECT_EQ(layer(R"("window": 1)").window, 1);
  EXPECT_EQ(layer(R"("window": 100)").window, 100);
  EXPECT_EQ(error_of(tiny(R"("window": 0)")), "tiny.json: /window: must be an integer from 1 to 2147483647, got 0");
  EXPECT_EQ(error_of(tiny(R"("window": -1)")), "tiny.json: /window: must be an integer from 1 to 2147483647, got -1");
}

}  // namespace
}  // namespace attn
