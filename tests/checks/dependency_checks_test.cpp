// effective-mask, causality-gradient, truncation, batch- and head-independence, permutation, nan-propagation and
// gradient, on subjects made for them.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include <gtest/gtest.h>

#include "checks/check_test_support.h"
#include "checks/even_input.h"
#include "checks/sampling.h"

namespace attn {
namespace {

/// Our layer, with something done to its output or to its core's context.
class Changed : public LayerSubject {
 public:
  using Change = std::function<at::Tensor(const at::Tensor& result, const at::Tensor& input)>;
  Changed(const RunConfig& run, Change output, Change core_context = nullptr)
      : LayerSubject(run, [](const RunConfig& config) { return make_layer(config); }),
        output_(std::move(output)),
        context_(std::move(core_context)) {}

  at::Tensor forward(const AttentionInput& input) override {
    const at::Tensor output = LayerSubject::forward(input);
    return output_ ? output_(output, input.x) : output;
  }
  std::optional<CapturedSteps> attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const std::optional<at::Tensor>& mask, const at::Tensor& real_keys) override {
    std::optional<CapturedSteps> steps = LayerSubject::attend(q, k, v, mask, real_keys);
    if (context_) steps->output = steps->values[Step::kContext] = context_(steps->output, v);
    return steps;
  }

 private:
  Change output_, context_;
};

CheckResult judge_one(Subject& subject, const RunConfig& run, const std::string& check, bool quick = false) {
  VerifyOptions options;
  options.only = {check};
  options.quick = quick;
  return run_checks(subject, run, whole_input_of(run), options).front();
}

std::string says(const CheckResult& result) { return describe({result}); }

std::int64_t count(const DependencyMap& map, PairState state) {
  return std::count(map.pairs.begin(), map.pairs.end(), state);
}

TEST(EffectiveMask, OfAnHonestLayerIsTheDeclaredTriangle) {
  const RunConfig run = small_run();
  Changed honest(run, nullptr);
  const CheckResult result = judge_one(honest, run, "effective-mask");
  EXPECT_EQ(result.status, CheckStatus::kPass) << says(result);
  const DependencyMap& map = result.map.value();
  EXPECT_EQ(map.queries, 7);
  EXPECT_EQ(count(map, PairState::kVisible), 28);
  EXPECT_EQ(count(map, PairState::kHidden), 21);
  for (std::int64_t i = 0; i < 7; ++i) {
    for (std::int64_t j = 0; j < 7; ++j) {
      EXPECT_EQ(map.pairs[static_cast<std::size_t>(i * 7 + j)], j <= i ? PairState::kVisible : PairState::kHidden);
    }
  }
  // Core, twice: 49 pairs for 2 items of 3 heads; layer: the 21 hidden pairs for 2 items.
  EXPECT_EQ(result.compared, 2 * 49 * 6 + 21 * 2);
}

TEST(EffectiveMask, NamesALeakOfTheCoreWithItsHead) {
  const RunConfig run = small_run();
  Changed leaking(run, nullptr, [](const at::Tensor& context, const at::Tensor& v) {
    at::Tensor changed = context.clone();
    changed.select(0, 1).select(0, 2).select(0, 3).add_(v.select(0, 1).select(0, 2).select(0, 6), 1e-6);
    return changed;
  });
  const CheckResult result = judge_one(leaking, run, "effective-mask");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(result.where_first, "(batch 1, head 2, query 3, key 6)");
  EXPECT_EQ(result.wrong, 2);  // read out, and moved
  EXPECT_NEAR(result.measured.value(), 1e-6, 1e-11);
  EXPECT_EQ(count(result.map.value(), PairState::kLeak), 1);
  EXPECT_EQ(result.map->pairs[3 * 7 + 6], PairState::kLeak);
}

TEST(EffectiveMask, NamesAKeyThatIsWronglyHidden) {
  const RunConfig run = small_run();
  Changed blind(run, nullptr, [](const at::Tensor& context, const at::Tensor& v) {
    at::Tensor changed = context.clone();
    changed.select(2, 4).copy_(v.select(2, 1));  // query 4 sees key 1 only
    return changed;
  });
  const CheckResult result = judge_one(blind, run, "effective-mask");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(result.where_first, "(batch 0, head 0, query 4, key 0)");
  EXPECT_EQ(result.wrong, 2 * 4 * 6);  // keys 0, 2, 3, 4 for 2 items of 3 heads, read out and moved
  EXPECT_EQ(count(result.map.value(), PairState::kHiddenWrong), 4);
}

TEST(EffectiveMask, SeesALeakOutsideTheCore) {
  const RunConfig run = small_run();
  Changed leaking(run, [](const at::Tensor& output, const at::Tensor& x) {
    at::Tensor changed = output.clone();
    changed.select(1, 2).add_(x.select(1, 5), 1e-6);
    return changed;
  });
  const CheckResult result = judge_one(leaking, run, "effective-mask");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(result.where_first, "(batch 0, query 2, key 5)");
}

TEST(EffectiveMask, AboveItsBudgetSaysWhichPairsItLeftOut) {
  RunConfig run = small_run();
  run.B = 1;
  run.T = 300;
  run.attention.H = 16;
  run.attention.d_model = 16;
  run.attention.max_seq_len = 300;
  Changed honest(run, nullptr);
  const CheckResult result = judge_one(honest, run, "effective-mask", /*quick=*/true);
  EXPECT_EQ(result.status, CheckStatus::kPass) << says(result);
  EXPECT_NE(result.sampled.find("28 of 300 keys moved, 28 of 300 tokens moved"), std::string::npos) << says(result);
  EXPECT_GT(count(result.map.value(), PairState::kUnjudged), 0);
  EXPECT_EQ(result.map->pairs[0], PairState::kVisible);  // both ends are always tried
  EXPECT_EQ(result.map->pairs[299], PairState::kHidden);
}

TEST(CausalityGradient, SeesALeakThatOnlyTheBackwardPassHas) {
  const RunConfig run = small_run();
  Changed leaking(run, [](const at::Tensor& output, const at::Tensor& x) {
    const at::Tensor future = x.narrow(2, 0, 1).sum(1, true);
    return output + (future - future.detach()) * 1e-6;
  });
  const CheckResult result = judge_one(leaking, run, "causality-gradient");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(result.where_first, "gradient of output 0 at (batch 0, token 1, channel 0)");
  EXPECT_EQ(judge_one(leaking, run, "causality").status, CheckStatus::kPass);
}

TEST(CausalityGradient, SeesATokenThatIsCutOff) {
  const RunConfig run = small_run();
  Changed detached(run, [](const at::Tensor& output, const at::Tensor& x) { return output.detach() + x * 0; });
  const CheckResult result = judge_one(detached, run, "causality-gradient");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.detail.find("no gradient of output 0 reaches (batch 0, token 0)"), std::string::npos)
      << says(result);
}

TEST(Truncation, SeesAnOutputThatDependsOnTheLength) {
  const RunConfig run = small_run();
  Changed normalised(run, [](const at::Tensor& output, const at::Tensor& x) {
    return output * (1.0 + 1e-3 / static_cast<double>(x.size(1)));
  });
  const CheckResult result = judge_one(normalised, run, "truncation");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.where_first.find("first 1 tokens (batch 0, token 0"), std::string::npos) << says(result);
}

TEST(BatchIndependence, SeesAnItemThatMovesAnother) {
  const RunConfig run = small_run();
  Changed mixing(run, [](const at::Tensor& output, const at::Tensor& x) {
    return output + 1e-6 * x.narrow(2, 0, 1).mean(0, true);
  });
  const CheckResult result = judge_one(mixing, run, "batch-independence");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.detail.find("changing item 0 moves (batch 1"), std::string::npos) << says(result);
}

TEST(BatchIndependence, MakesABatchOfItsOwnFromOneItem) {
  RunConfig run = small_run();
  run.B = 1;
  Changed mixing(run, [](const at::Tensor& output, const at::Tensor& x) { return output + x.mean(0, true); });
  EXPECT_EQ(judge_one(mixing, run, "batch-independence").status, CheckStatus::kFail);
  Changed honest(run, nullptr);
  const CheckResult result = judge_one(honest, run, "batch-independence");
  EXPECT_EQ(result.status, CheckStatus::kPass) << says(result);
  EXPECT_NE(result.detail.find("all 2 items"), std::string::npos) << says(result);
}

TEST(HeadIndependence, SeesAHeadThatMovesAnother) {
  const RunConfig run = small_run();
  Changed mixing(run, nullptr,
                 [](const at::Tensor& context, const at::Tensor&) { return context + 1e-6 * context.mean(1, true); });
  const CheckResult result = judge_one(mixing, run, "head-independence");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(result.where_first, "q, k and v (batch 0, head 1, query 0, channel 0)");
}

TEST(Permutation, SeesAContextThatDependsOnThePlaceOfAValue) {
  const RunConfig run = small_run();
  Changed ordered(run, nullptr,
                  [](const at::Tensor& context, const at::Tensor& v) { return context + 1e-3 * v.narrow(2, 0, 1); });
  const CheckResult result = judge_one(ordered, run, "permutation");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.detail.find("in another order"), std::string::npos) << says(result);
}

TEST(Permutation, WithoutAMaskAlsoTurnsTheTokens) {
  RunConfig run = small_run();
  run.attention.causal = false;
  Changed placed(run, [](const at::Tensor& output, const at::Tensor&) {
    return output + at::arange(output.size(1), output.options()).view({1, -1, 1}) * 1e-3;
  });
  EXPECT_EQ(judge_one(placed, run, "permutation").status, CheckStatus::kFail);
}

TEST(NanPropagation, SeesANanThatIsTurnedIntoANumber) {
  const RunConfig run = small_run();
  Changed hiding(run,
                 [](const at::Tensor& output, const at::Tensor&) { return at::nan_to_num(output, 0.0, 0.0, 0.0); });
  const CheckResult result = judge_one(hiding, run, "nan-propagation");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(result.where_first, "NaN in token 0 (batch 0, token 0, channel 0)");
}

TEST(Gradient, SeesAGradientThatDoesNotFitTheForwardPass) {
  const RunConfig run = small_run();
  const LayerFactory doubled = [](const RunConfig& config) {
    auto layer = make_layer(config);
    layer->parameters()[0].register_hook([](const at::Tensor& gradient) { return gradient * 2; });
    return layer;
  };
  LayerSubject subject(run, doubled);
  const CheckResult result = judge_one(subject, run, "gradient");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(result.where_first, "c_attn.weight");
  EXPECT_EQ(result.wrong, 1);
}

TEST(Gradient, LeavesTheParametersAsTheyWere) {
  const RunConfig run = small_run();
  std::shared_ptr<MultiHeadAttentionImpl> built;
  LayerSubject subject(run, [&](const RunConfig& config) { return built = make_layer(config); });
  const CheckResult result = judge_one(subject, run, "gradient");
  EXPECT_EQ(result.status, CheckStatus::kPass) << says(result);
  RunConfig exact = run;
  exact.dtype = Dtype::kFloat64;
  const auto fresh = make_layer(exact);
  for (std::size_t n = 0; n < fresh->parameters().size(); ++n) {
    EXPECT_TRUE(built->parameters()[n].equal(fresh->parameters()[n]));
  }
}

TEST(EvenInput, GivesEveryVisibleKeyAWeightThatMatters) {
  RunConfig run = small_run();
  LayerSubject loud(run, [](const RunConfig& config) {
    auto layer = make_layer(config);
    const at::NoGradGuard no_gradients;
    for (at::Tensor parameter : layer->parameters()) parameter.mul_(50.0);
    return layer;
  });
  CheckContext context(loud, run, {input_of(run)});
  const auto steps = loud.forward_with_steps({even_input(context).input});
  const at::Tensor last = steps->values.at(Step::kWeights).select(2, 6);  // sees all seven keys
  EXPECT_GT(last.min().item<double>(), 1.0 / 7.0 / std::exp(1.0));
}

TEST(OtherBits, TakeBothZerosForOneNumberAndNanForWhatItIs) {
  const at::Tensor a = at::tensor({0.0, 0.0, 1.0, std::nan(""), 2.0}),
                   b = at::tensor({-0.0, 1e-300, 1.0, std::nan(""), std::nan("")});
  EXPECT_TRUE(other_bits(a, b).equal(at::tensor({0, 1, 0, 0, 1}).to(at::kBool)));
}

TEST(AffordableLength, IsWhatWasWantedWhereThatFitsAndNeverLessThanTheRun) {
  AttentionConfig config;  // d_model 64, H 4
  EXPECT_EQ(affordable_length(config, 8, 272, 1e10, 4), 272);
  EXPECT_LT(affordable_length(config, 8, 272, 1e6, 4), 272);
  EXPECT_EQ(affordable_length(config, 300, 272, 1e6, 4), 300);
  config.H = 64;
  EXPECT_LE(forward_bytes(config, affordable_length(config, 8, 272, 1e12, 4), 4), kSmallBatchBytes);
}

TEST(TellingPlaces, AreAllWhereThatIsAffordableAndElseHoldBothEndsAndEveryPowerOfTwo) {
  EXPECT_EQ(telling_places(1, 5, 5.0), (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(telling_places(3, 2, 10.0), std::vector<std::int64_t>{});
  const std::vector<std::int64_t> sample = telling_places(1, 1000, 60.0);
  EXPECT_LE(sample.size(), 60U);
  for (const std::int64_t place : {1, 2, 3, 1000, 500, 511, 512, 513, 127, 128, 129}) {
    EXPECT_TRUE(std::binary_search(sample.begin(), sample.end(), place)) << place;
  }
  EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
}

}  // namespace
}  // namespace attn
