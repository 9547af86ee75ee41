#include "checks/planted_faults.h"

#include <ATen/core/grad_mode.h>

#include <gtest/gtest.h>

#include "checks/check_test_support.h"

namespace attn {
namespace {

using Names = std::set<std::string>;

/// All verdicts. Each of `expected` must fail, none may end in `error`.
std::vector<CheckResult> expect_failing(const LayerFactory& fault, const Names& expected,
                                        const RunConfig& run = small_run()) {
  const std::vector<CheckResult> results = judge(run, fault);
  for (const std::string& name : expected) {
    EXPECT_EQ(find(results, name).status, CheckStatus::kFail) << name << "\n" << describe(results);
  }
  EXPECT_EQ(with_status(results, CheckStatus::kError), Names{}) << describe(results);
  return results;
}

/// The same, and no other check may fail: the fault is one that only this one can see.
std::vector<CheckResult> expect_failing_alone(const LayerFactory& fault, const std::string& check,
                                              const RunConfig& run = small_run()) {
  const std::vector<CheckResult> results = judge(run, fault);
  EXPECT_EQ(with_status(results, CheckStatus::kFail), Names{check}) << describe(results);
  EXPECT_EQ(with_status(results, CheckStatus::kError), Names{}) << describe(results);
  return results;
}

void expect_says(const CheckResult& result, const std::string& words) {
  EXPECT_NE(result.detail.find(words), std::string::npos) << result.name << ": " << result.detail;
}

TEST(PlantedFaults, AnAxisLeftOverIsCaughtByShapes) {
  const auto results = expect_failing_alone(planted("head-axis-left"), "shapes");
  expect_says(find(results, "shapes"), "merged is (2, 7, 1, 12), expected (B, T, H*d_k) = (2, 7, 12)");
  EXPECT_EQ(find(results, "shapes").where_first, "merged");
}

TEST(PlantedFaults, AnOutputOfAnotherShapeFailsWhateverNeedsTheOutput) {
  const auto results = judge(small_run(), planted("output-flat"));
  EXPECT_EQ(find(results, "causality").status, CheckStatus::kFail) << describe(results);
  expect_says(find(results, "causality"), "output: expected what x is");
}

TEST(PlantedFaults, NanInOneGradientIsCaughtByFinite) {
  const auto results = expect_failing(planted("gradient-nan-in-one-element"), {"finite"});
  const CheckResult& finite = find(results, "finite");
  EXPECT_EQ(finite.where_first, "gradient of c_proj.weight (row 11, column 11)");
  EXPECT_EQ(finite.wrong, 1);
}

TEST(PlantedFaults, AGradientThatIsAllZeroIsCaughtByFinite) {
  const auto results = expect_failing(planted("gradient-zero-of-output-weight"), {"finite"});
  expect_says(find(results, "finite"), "the gradient of c_proj.weight is all zero");
}

TEST(PlantedFaults, AFrozenWeightIsCaughtByFinite) {
  const auto results = expect_failing(planted("gradient-frozen-output-weight"), {"finite"});
  expect_says(find(results, "finite"), "no gradient reaches c_proj.weight");
}

TEST(PlantedFaults, NanInAWeightIsCaughtWhereverItIsLookedAt) {
  const auto results = judge(small_run(), planted("nan-in-one-weight"));
  for (const char* name :
       {"finite", "row-sums", "masked-weights", "first-token", "causality", "sdpa-forward", "determinism"}) {
    EXPECT_EQ(find(results, name).status, CheckStatus::kFail) << name << "\n" << describe(results);
  }
  expect_says(find(results, "row-sums"), "not finite");
}

TEST(PlantedFaults, WeightsThatSumToTwoAreCaughtByRowSums) {
  const auto results = expect_failing(planted("weights-announced-twice"), {"row-sums"});
  EXPECT_EQ(find(results, "row-sums").where_first, "weights (batch 0, head 0, query 0)");
  EXPECT_NEAR(find(results, "row-sums").measured.value(), 1.0, 1e-5);
  EXPECT_EQ(find(results, "row-sums").wrong, 2 * 3 * 7);
}

TEST(PlantedFaults, SoftmaxOverTheQueriesIsNamed) {
  const auto results = expect_failing(planted("softmax-over-queries"),
                                      {"row-sums", "first-token", "sdpa-forward", "sdpa-backward", "causality"});
  expect_says(find(results, "row-sums"), "columns sum to 1: softmax runs over the query axis");
}

TEST(PlantedFaults, SoftmaxOverTheHeadsIsNamed) {
  RunConfig run = small_run();
  run.attention.causal = false;
  const auto results =
      expect_failing(planted("softmax-over-heads"), {"row-sums", "sdpa-forward", "sdpa-backward"}, run);
  expect_says(find(results, "row-sums"), "softmax runs over the head axis");
}

TEST(PlantedFaults, DropoutActiveInEvalIsNamed) {
  const auto results = judge(small_run(), planted("dropout-in-eval"));
  expect_says(find(results, "row-sums"), "dropout is active");
  expect_says(find(results, "row-sums"), "1.25 = 1/(1 - 0.2)");
  EXPECT_EQ(find(results, "determinism").status, CheckStatus::kFail);
}

TEST(PlantedFaults, AFiniteFillIsCaughtByMaskedWeights) {
  const auto results = expect_failing(planted("mask-fill-minus-50"), {"masked-weights", "causality-gradient"});
  expect_says(find(results, "masked-weights"), "query 0 sees key 1, which its mask hides");
  EXPECT_EQ(find(results, "masked-weights").where_first, "(batch 0, head 0, query 0, key 1)");
  EXPECT_EQ(find(results, "masked-weights").wrong, 2 * 3 * 21);
}

TEST(PlantedFaults, AHiddenKeyThatShouldBeVisibleIsCaughtByMaskedWeights) {
  const auto results =
      expect_failing(planted("mask-hides-visible-key"), {"masked-weights", "sdpa-forward", "sdpa-backward"});
  expect_says(find(results, "masked-weights"), "query 6 gives key 3, which it may see, weight 0");
  EXPECT_EQ(find(results, "masked-weights").wrong, 2 * 3);
}

TEST(PlantedFaults, ADiagonalShiftedByOneIsCaughtByMaskedWeightsAndCausality) {
  const auto results = expect_failing(planted("mask-leaks-one-key"),
                                      {"masked-weights", "first-token", "causality", "sdpa-forward", "sdpa-backward"});
  expect_says(find(results, "masked-weights"), "query 0 sees key 1");
  EXPECT_EQ(find(results, "causality").where_first, "(batch 0, token 0, channel 0)");
}

TEST(PlantedFaults, OneLeakedPairIsCaughtAndNamed) {
  const auto results = judge(small_run(), core_fault<OpenPair>(LeakedPair{1, 2, 3, 6})());
  const CheckResult& masked = find(results, "masked-weights");
  EXPECT_EQ(masked.status, CheckStatus::kFail);
  EXPECT_EQ(masked.where_first, "(batch 1, head 2, query 3, key 6)");
  EXPECT_EQ(masked.wrong, 1);
}

TEST(PlantedFaults, AFirstTokenOffByARoundingIsCaughtByFirstToken) {
  const auto results = expect_failing_alone(planted("first-token-rounded"), "first-token");
  EXPECT_EQ(find(results, "first-token").where_first, "(batch 0, head 0, query 0, channel 0)");
}

TEST(PlantedFaults, AnAnnouncedScaleThatIsTwiceTooLargeIsCaughtByScaleAlone) {
  expect_failing_alone(planted("scale-announced-twice"), "scale");
}

TEST(PlantedFaults, EachWrongScaleIsNamed) {
  const struct {
    double factor;
    const char* words;
  } cases[] = {{1.0, "q.k times 1 = no scale at all, expected 0.5 = 1/sqrt(d_k)"},
               {0.25, "0.25 = 1/d_k, which is 1/sqrt(d_k) applied twice"},
               {1 / std::sqrt(12.0), "0.2887 = 1/sqrt(d_model)"},
               {1 / std::sqrt(3.0), "0.5774 = 1/sqrt(H)"},
               {2.0, "2 = sqrt(d_k)"},
               {0.4, "q.k times 0.4, expected 0.5"},
               {0.50001, "q.k times 0.50001, expected 0.5 = 1/sqrt(d_k)"}};
  for (const auto& [factor, words] : cases) {
    const auto results = expect_failing(planted_scale(factor), {"scale", "sdpa-forward", "sdpa-backward"});
    expect_says(find(results, "scale"), words);
  }
}

TEST(PlantedFaults, TheVarianceOfScoresIsCaughtBesideTheFactor) {
  const auto results = judge(small_run(), planted("scale-none"), {"scale"});
  expect_says(results.front(), "give scores of variance ");
  expect_says(results.front(), "expected 1");
}

TEST(PlantedFaults, ScoresThatAreNoMultipleOfDotProductsAreCaughtByScale) {
  const auto results = judge(small_run(), planted("scores-of-other-keys"), {"scale"});
  EXPECT_EQ(results.front().status, CheckStatus::kFail) << describe(results);
  EXPECT_EQ(results.front().where_first, "(batch 0, head 0, query 0, key 0)");
}

TEST(PlantedFaults, AFutureMixedInAtAMillionthIsCaughtByCausality) {
  const auto results = expect_failing(planted("future-mixed-in-1e-6"), {"causality"});
  const CheckResult& causality = find(results, "causality");
  expect_says(causality, "not causal: output (batch ");
  expect_says(causality, "when tokens 1 and later are redrawn");
  EXPECT_EQ(causality.limit, 0.0);
}

TEST(PlantedFaults, AnAverageOverBlocksIsSeenBetweenTheBorders) {
  RunConfig run = small_run();
  run.T = 8;
  const auto results = expect_failing(planted("outputs-averaged-over-4"), {"causality"}, run);
  expect_says(find(results, "causality"), "tokens 1 and later");
}

TEST(PlantedFaults, NoMaskIsCaught) {
  const auto results = expect_failing(planted("mask-none"),
                                      {"masked-weights", "first-token", "causality", "sdpa-forward", "sdpa-backward"});
  EXPECT_EQ(find(results, "causality").where_first, "(batch 0, token 0, channel 0)");
}

TEST(PlantedFaults, AnOutputThatIgnoresItsInputDoesNotPassAsCausal) {
  const auto results = judge(small_run(), planted("output-all-zero"));
  EXPECT_EQ(find(results, "causality").status, CheckStatus::kFail);
  expect_says(find(results, "causality"), "moves no output at all");
  EXPECT_EQ(find(results, "mask-control").status, CheckStatus::kFail);
  EXPECT_EQ(find(results, "finite").status, CheckStatus::kFail);
  expect_says(find(results, "sdpa-backward"), "the gradient of context is all zero");
}

TEST(PlantedFaults, AMaskThatCannotBeSwitchedOffIsCaughtByMaskControl) {
  const auto results = expect_failing(planted("mask-always-on"), {"mask-control"});
  expect_says(find(results, "mask-control"), "with the mask off");
  EXPECT_EQ(find(results, "mask-control").where_first, "(cut 1)");
}

TEST(PlantedFaults, AContextSlightlyOffIsCaughtBySdpaForward) {
  const auto results = expect_failing(planted("context-off"), {"sdpa-forward"});
  expect_says(find(results, "sdpa-forward"), "a bug, not rounding");
  EXPECT_NE(find(results, "sdpa-forward").where_worst.find("context, math (batch "), std::string::npos);
}

TEST(PlantedFaults, WrongGradientsAreCaughtBySdpaBackward) {
  const auto doubled = [](at::Tensor gradient) { return gradient * 2; };
  const auto zero = [](at::Tensor gradient) { return gradient * 0; };
  const auto one_element = [](at::Tensor gradient) {
    gradient = gradient.clone();
    gradient[1][2][6][3] += 1e-3;
    return gradient;
  };
  for (const std::function<at::Tensor(at::Tensor)>& change :
       std::initializer_list<std::function<at::Tensor(at::Tensor)>>{doubled, zero, one_element}) {
    expect_failing(core_fault<GradientOfQueries>(change)(), {"sdpa-backward"});
  }
  const auto results =
      judge(small_run(), core_fault<GradientOfQueries>(std::function<at::Tensor(at::Tensor)>(one_element))());
  EXPECT_EQ(find(results, "sdpa-backward").where_first, "dq, float64 loops (batch 1, head 2, query 6, channel 3)");
}

TEST(PlantedFaults, DetachedQueriesAreCaught) {
  const auto results = expect_failing(planted("gradient-detached-q"), {"finite", "sdpa-backward"});
  expect_says(find(results, "finite"), "no gradient reaches q");
  expect_says(find(results, "sdpa-backward"), "no gradient reaches q");
}

TEST(PlantedFaults, ALayerThatIsRebuiltDifferentlyIsCaughtByDeterminismAlone) {
  const auto results = expect_failing_alone(planted("rebuilt-differently"), "determinism");
  expect_says(find(results, "determinism"), "the same seed builds another layer");
}

TEST(PlantedFaults, NoiseIsCaughtByDeterminism) {
  const auto results = judge(small_run(), planted("noise-1e-6"), {"determinism"});
  EXPECT_EQ(results.front().status, CheckStatus::kFail);
  expect_says(results.front(), "two runs in eval differ");
}

TEST(PlantedFaults, StateKeptBetweenCallsIsCaughtByDeterminism) {
  const auto results = judge(small_run(), planted("state-kept"), {"determinism"});
  EXPECT_EQ(results.front().status, CheckStatus::kFail);
}

TEST(PlantedFaults, SurvivorsThatAreNotScaledAreCaughtByDropoutAlone) {
  RunConfig run = small_run();
  run.attention.dropout = 0.25;
  const auto results = expect_failing_alone(planted("dropout-not-scaled"), "dropout", run);
  expect_says(find(results, "dropout"), "surviving weights are scaled by 1, expected 1.333 = 1/(1 - p)");
}

TEST(PlantedFaults, AnotherShareOfDropoutIsCaughtByDropoutAlone) {
  RunConfig run = small_run();
  run.attention.dropout = 0.25;
  const auto results = expect_failing_alone(planted("dropout-half"), "dropout", run);
  expect_says(find(results, "dropout"), "expected 25 %");
}

TEST(PlantedFaults, ALayerThatThrowsFailsWithItsMessage) {
  const auto results = judge(small_run(), planted("throws"));
  EXPECT_EQ(with_status(results, CheckStatus::kError), Names{}) << describe(results);
  EXPECT_EQ(find(results, "causality").status, CheckStatus::kFail);
  expect_says(find(results, "causality"), "the layer threw: ");
  EXPECT_EQ(find(results, "causality").detail.find('\n'), std::string::npos);
}

/// H = 4 over two key heads, d_k = 4, RoPE.
RunConfig grouped_run() {
  RunConfig run = small_run();
  run.attention.d_model = 16;
  run.attention.H = 4;
  run.attention.given_H_kv = 2;
  run.attention.rope = RopeConfig{500000.0, RopeStyle::kHalf, {}};
  return run;
}

TEST(PlantedFaults, TiledKeyHeadsAreNamed) {
  const auto results = expect_failing(planted("groups-tiled"), {"gqa-map", "sdpa-forward"}, grouped_run());
  expect_says(find(results, "gqa-map"), "key heads 0,1,0,1, expected 0,0,1,1: they are tiled");
  expect_says(find(judge(grouped_run(), planted("groups-values-tiled"), {"gqa-map"}), "gqa-map"),
              "value heads 0,1,0,1, expected 0,0,1,1");
}

TEST(PlantedFaults, EachWrongTurnIsNamed) {
  const struct {
    const char* fault;
    const char* words;
  } cases[] = {{"rope-other-pairing", "they match style adjacent"},
               {"rope-forgotten", "they are not turned at all"},
               {"rope-theta-10000", "they match theta 10000, not the config's"},
               {"rope-on-values", "v is not to be turned"}};
  for (const auto& [fault, words] : cases) {
    const auto results = expect_failing(planted(fault), {"rope-relative"}, grouped_run());
    expect_says(find(results, "rope-relative"), words);
  }
}

TEST(PlantedFaults, TurningBeforeTheNormShowsWhereTheNormHasAWeight) {
  RunConfig run = grouped_run();
  run.attention.qk_norm = true;
  const LayerFactory faulty = planted("rope-before-norm");
  const LayerFactory with_weights = [&](const RunConfig& config) {
    const auto layer = faulty(config);
    const at::NoGradGuard no_gradients;
    for (const auto& item : layer->named_parameters()) {
      if (item.key() == "q_norm.weight") item.value().copy_(at::arange(1, 5) / 2.0);
    }
    return layer;
  };
  expect_failing(with_weights, {"reference-weights"}, run);
  const auto unseen = judge(run, faulty, {"reference-weights"});
  EXPECT_EQ(unseen.front().status, CheckStatus::kPass) << describe(unseen);
}

TEST(PlantedFaults, AWindowOfAnotherLengthIsNamed) {
  RunConfig run = small_run();
  run.attention.window = 3;
  const struct {
    const char* fault;
    const char* words;
  } cases[] = {{"window-one-more",
                "with window 3 the queries see 1,2,3,4,4,4,4 keys, expected 1,2,3,3,3,3,3: "
                "a window of W + 1, which does not count the token itself"},
               {"window-one-less", "a window of W - 1"},
               {"window-forgotten", "the window is not applied"}};
  for (const auto& [fault, words] : cases) {
    expect_says(find(expect_failing(planted(fault), {"window", "masked-weights"}, run), "window"), words);
  }
}

TEST(PlantedFaults, WhatACacheDoesWrongIsSeenByKvCacheAlone) {
  RunConfig run = grouped_run();
  run.attention.window = 3;
  for (const char* fault : {"cache-top-left", "cache-appended-twice", "cache-last-key-lost", "cache-stale-after-reset",
                            "cache-drops-one-too-many", "cache-forgets-window", "rope-offset-forgotten"}) {
    SCOPED_TRACE(fault);
    expect_failing_alone(planted(fault), "kv-cache", run);
  }
}

TEST(PlantedFaults, PaddingThatIsNotHiddenIsCaught) {
  RunConfig run = small_run();
  run.attention.causal = false;
  run.padding = PaddingSide::kRight;
  run.lengths = {7, 4};
  for (const char* fault : {"padding-forgotten", "padding-of-neighbour", "padding-other-side"}) {
    SCOPED_TRACE(fault);
    const auto results = expect_failing(planted(fault), {"masked-weights", "padding"}, run);
    expect_says(find(results, "padding"), "other numbers in the padding move output");
  }
}

TEST(PlantedFaults, PaddingAlongTheQueriesIsCaught) {
  RunConfig run = small_run();
  run.padding = PaddingSide::kRight;
  run.lengths = {7, 4};
  expect_failing(planted("padding-along-queries"), {"masked-weights", "reference-forward"}, run);
}

TEST(PlantedFaults, RowsWithoutAKeyMustStayEmpty) {
  RunConfig run = small_run();
  run.padding = PaddingSide::kLeft;
  run.lengths = {7, 4};
  expect_failing(planted("empty-rows-uniform"), {"masked-weights", "padding"}, run);
  expect_failing(planted("empty-rows-nan"), {"finite", "padding"}, run);
}

TEST(PlantedFaults, AMaskOfOnesOwnThatReplacesTheCausalOneIsCaught) {
  RunConfig run = small_run();
  run.attention.mask = DocumentMask{{3}};
  expect_failing(planted("own-mask-replaces-causal"), {"masked-weights", "causality", "effective-mask"}, run);
}

TEST(PlantedFaults, FaultsOfTheMaskAreCaughtWithTheEngineSdpa) {
  RunConfig run = small_run();
  run.attention.engine = Engine::kSdpa;
  run.attention.window = 4;
  for (const char* fault : {"mask-leaks-one-key", "window-one-more", "window-not-causal"}) {
    SCOPED_TRACE(fault);
    const auto results = judge(run, planted(fault));
    EXPECT_EQ(find(results, "masked-weights").status, CheckStatus::kNotApplicable);
    EXPECT_EQ(find(results, "effective-mask").status, CheckStatus::kFail) << describe(results);
  }
}

TEST(PlantedFaults, ASinkThatTakesNoShareIsNamed) {
  RunConfig run = small_run();
  run.attention.sink = true;
  const auto results = expect_failing(planted("sink-dropped"), {"sink", "row-sums", "reference-weights"}, run);
  expect_says(find(results, "sink"), "every row gives 1 to its keys: the sink takes no share");
}

TEST(PlantedFaults, ACapAfterTheMaskShowsHiddenKeys) {
  RunConfig run = small_run();
  run.attention.softcap = 30.0;
  expect_failing(planted("softcap-after-mask"), {"masked-weights"}, run);
}

TEST(PlantedFaults, AreCaughtInEveryPrecision) {
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kBFloat16, Dtype::kFloat16}) {
    RunConfig run = small_run();
    run.dtype = dtype;
    run.T = 13;
    const auto scale = judge(run, planted("scale-sqrt-d-model"));
    EXPECT_EQ(find(scale, "scale").status, CheckStatus::kFail) << to_string(dtype) << "\n" << describe(scale);
    expect_says(find(scale, "scale"), "1/sqrt(d_model)");
    const auto shifted = judge(run, planted("mask-leaks-one-key"));
    EXPECT_EQ(find(shifted, "causality").status, CheckStatus::kFail) << to_string(dtype);
    EXPECT_EQ(find(shifted, "masked-weights").status, CheckStatus::kFail) << to_string(dtype);
    const auto queries = judge(run, planted("softmax-over-queries"));
    EXPECT_EQ(find(queries, "row-sums").status, CheckStatus::kFail) << to_string(dtype);
    EXPECT_EQ(find(queries, "sdpa-forward").status, CheckStatus::kFail) << to_string(dtype);
  }
}

}  // namespace
}  // namespace attn
