// Honest layers where rounding, saturation or emptiness once misled a check, and what is said where nothing follows.
#include <limits>

#include <gtest/gtest.h>

#include "checks/check_test_support.h"
#include "checks/faults/faults.h"
#include "checks/slow/random_config.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

VerifyResult verify_words(const Words& words, const Words& only = {}) {
  VerifyOptions options;
  options.only = only;
  return verify_attention(config_of(words).run, options);
}

/// Of a bias far larger than the rest, of which bfloat16 keeps nothing.
const Words kOneNumber{"B=1", "T=3", "d_model=1", "H=1", "dtype=bfloat16", "bias=true", "seed=104"};

class HonestExtremes : public ::testing::TestWithParam<std::pair<const char*, Words>> {};

TEST_P(HonestExtremes, RaiseNoAlarm) {
  for (const CheckResult& check : verify_words(GetParam().second).checks) {
    const bool alarm = check.status == CheckStatus::kFail || check.status == CheckStatus::kError;
    EXPECT_FALSE(alarm) << describe({check});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Configs, HonestExtremes,
    ::testing::Values(
        // One product over all heads that share the key head rounds by more than one a head.
        std::pair{"SixteenHeadsOnOneKeyHead", Words{"B=2", "T=32", "d_model=64", "H=16", "H_kv=1"}},
        std::pair{"OneChannelAHeadOnOneKeyHead", Words{"B=2", "T=32", "d_model=32", "H=32", "d_k=1", "H_kv=1"}},
        // The norm lifts the bias again, however small the input: no input makes the scores even.
        std::pair{"ScoresThatNoInputMakesEven", Words{"B=1", "T=9", "d_model=16", "H=2", "scale=100", "bias=true",
                                                      "qk_norm=true", "rope.style=half"}},
        std::pair{"SaturatedSoftmax", Words{"B=2", "T=12", "d_model=64", "H=4", "scale=1000"}},
        std::pair{"HugeScale", Words{"B=1", "T=8", "d_model=16", "H=2", "scale=1e30"}},
        // LibTorch's own kernel is that far from the truth.
        std::pair{"LibTorchsOwnRounding",
                  Words{"B=1", "T=16", "d_model=8", "H=1", "scale=10", "qk_norm=true", "engine=sdpa", "seed=122"}},
        std::pair{"OutputsThatRoundToOneNumber", kOneNumber},
        std::pair{"OutputsThatRoundToOneNumberInEveryItem",
                  Words{"B=2", "T=3", "d_model=1", "H=1", "dtype=bfloat16", "bias=true", "engine=sdpa", "seed=439"}},
        // 1 - tanh^2 near saturation is a difference of almost equal numbers.
        std::pair{"SoftcapFarBelowTheScores",
                  Words{"B=2", "T=9", "d_model=16", "H=2", "softcap=0.01", "scale=100", "seed=62"}},
        // Their scores are small by cancelling, their roundings are not, and the softcap flattens all larger scores.
        std::pair{"SoftcapOfProductsThatCancel",
                  Words{"B=2", "T=6", "d_model=8", "H=2", "softcap=1", "scale=300", "seed=34"}},
        // A norm of queries in one direction: every gradient of x is a difference of equal numbers.
        std::pair{"NormedQueriesOfOneChannel",
                  Words{"B=4", "T=9", "d_model=1", "H=1", "d_k=4", "qkv=separate", "qk_norm=true", "seed=148"}},
        std::pair{"NormedQueriesUnderASoftcap",
                  Words{"B=4", "T=15", "d_model=30", "H=6", "d_k=10", "causal=false", "qk_norm=true", "scale=106.37207",
                        "softcap=0.01", "qk_norm_eps=1e-5", R"(mask={"kind": "prefix", "length": 8})",
                        R"(rope={"theta": 2, "style": "adjacent"})"}},
        // A bias puts all scores far below the sink, which takes the rows whole: no gradient is left to arrive.
        std::pair{"SinkThatTakesWholeRows", Words{"B=1", "T=15", "d_model=4", "H=1", "dtype=float16", "bias=true",
                                                  "scale=1000", "alibi=true", "sink=true"}},
        // The usual step of central differences is too wide there.
        std::pair{"SoftcapThatBendsWithinAStep",
                  Words{"B=2", "T=9", "d_model=16", "H=2", "softcap=0.01", "scale=100", "seed=18"}}),
    [](const auto& test) { return std::string(test.param.first); });

TEST(ExtremeConfigs, SelfTestsPlantNothingThatChangesNothing) {
  for (const Words& words : {Words{"B=2", "T=3", "d_model=4", "H=1", "mask=[[0,0,0],[0,0,0],[0,0,0]]"},
                             Words{"B=1", "T=4", "d_model=8", "H=2", "scale=100", "softcap=0.01"},
                             Words{"B=1", "T=2", "d_model=8", "H=2", "mask=[[0,1],[0,1]]"},
                             Words{"B=1", "T=2", "d_model=24", "H=3", "dtype=float16", "bias=true", "window=2",
                                   "scale=65.82133", "sink=true"}}) {
    const SelfTestResult result = self_test(config_of(words).run);
    EXPECT_TRUE(result.passed()) << config_of(words).command();
  }
}

TEST(ExtremeConfigs, OneKeyBesideASinkHasAScale) {
  const Words one_token{"B=1", "T=1", "d_model=8", "H=2"};
  EXPECT_EQ(why_ruled_out("scale", config_of(one_token).run), "T is 1: with one key every scale gives weight 1");
  Words with_sink = one_token;
  with_sink.emplace_back("sink=true");
  EXPECT_EQ(why_ruled_out("scale", config_of(with_sink).run), "");
}

TEST(ExtremeConfigs, PaddingThatFillsNothingUpIsNotJudged) {
  const Words words{"B=1", "T=4", "d_model=4", "H=2", "padding=left", "lengths=[4]"};
  EXPECT_EQ(why_ruled_out("padding", config_of(words).run), "no item is shorter than the others: nothing is filled up");
}

TEST(ExtremeConfigs, NothingToDropIsNotJudged) {
  const VerifyResult result =
      verify_words({"B=2", "T=2", "d_model=8", "H=2", "dropout=0.5", "mask=[[0,0],[0,0]]"}, {"dropout"});
  EXPECT_EQ(result.checks[0].status, CheckStatus::kNotApplicable);
  EXPECT_EQ(result.checks[0].detail, "all weights and outputs are 0: nothing to drop");
}

TEST(ExtremeConfigs, WhatRoundingHidesIsCaughtInFloat64) {
  const RunConfig run = config_of(kOneNumber).run;
  EXPECT_EQ(find(verify_fault(run, "mask-always-on").checks, "mask-control").status, CheckStatus::kFail);
  EXPECT_EQ(find(verify_fault(run, "mask-none").checks, "causality").status, CheckStatus::kFail);
}

/// Its outputs grow with the number of tokens, by less than bfloat16 can show.
struct GrowsWithLength : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    const double growth = 1.0 + 1e-6 * static_cast<double>(merged.size(1));
    return MultiHeadAttentionImpl::project_output(merged) * growth;
  }
};

TEST(ExtremeConfigs, LengthsThatRoundingHidesAreCaughtInFloat64) {
  RunConfig run = small_run();
  run.dtype = Dtype::kBFloat16;
  const LayerFactory factory = [](const RunConfig& config) {
    return make_layer(
        config, LayerMaker([](const AttentionConfig& layer) { return std::make_shared<GrowsWithLength>(layer); }));
  };
  const CheckResult verdict = judge(run, factory, {"truncation"})[0];
  EXPECT_EQ(verdict.status, CheckStatus::kFail);
  EXPECT_NE(verdict.detail.find("a bug, not rounding"), std::string::npos) << verdict.detail;
}

/// The first item has one token to look at, whose weight is 1: no gradient goes back to its queries.
TEST(ExtremeConfigs, SlopesAreThoseOfTheFullestItems) {
  const RunConfig run = config_of({"B=2", "T=6", "d_model=24", "H=3", "padding=left", "lengths=[1,6]"}).run;
  const VerifyResult verdict = verify_fault(run, "gradient-zero");
  EXPECT_EQ(find(verdict.checks, "gradient").status, CheckStatus::kFail) << describe(verdict.checks);
}

TEST(ExtremeConfigs, OverflowIsNamed) {
  const VerifyResult result = verify_words({"B=1", "T=8", "d_model=16", "H=2", "dtype=float16", "scale=60000"});
  EXPECT_EQ(result.explained_by, "numbers overflow in float16: in float64 all is right");
  for (const CheckResult& check : result.checks) EXPECT_LE(check.wrong, check.compared) << describe({check});
}

/// A layer whose own tokens are finite cannot be blamed for what comes in.
TEST(ExtremeConfigs, NanInTheInputIsNotTheLayers) {
  RunConfig run = small_run();
  Experiment experiment = make_experiment(run);
  experiment.x[0][0][0] = std::numeric_limits<double>::quiet_NaN();
  LayerSubject subject(run, [](const RunConfig& config) { return make_layer(config); });
  VerifyOptions options;
  options.only = {"reference-forward"};
  const auto results = run_checks(subject, run, experiment.input(experiment.x), options);
  EXPECT_EQ(results[0].status, CheckStatus::kFail);
  EXPECT_EQ(results[0].detail, "nothing could be compared; x holds NaN or infinity: nothing follows for the layer");
}

TEST(ExtremeConfigs, OwnMasksOfAMemoryAreDiagnosed) {
  const RunConfig run = config_of({"B=1", "T=3", "d_model=8", "H=2", "qkv=separate", "memory.T_k=4",
                                   "mask=[[1,1,0,1],[1,1,1,1],[0,1,1,1]]"})
                            .run;
  EXPECT_EQ(verify_fault(run, "own-mask-forgotten").explained_by,
            "no mask is applied, or the config's own mask is not applied");
}

TEST(ExtremeConfigs, WeightsTooSmallForTheOutputAreDiagnosed) {
  const RunConfig run = config_of({"B=2", "T=12", "d_model=64", "H=4", "softcap=50"}).run;
  EXPECT_EQ(verify_fault(run, "softcap-after-mask").explained_by,
            "the softcap is applied after the mask: hidden keys get the score -50");
}

}  // namespace
}  // namespace attn
