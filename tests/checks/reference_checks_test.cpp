// reference-forward, -weights and -backward: what they pass, what they catch, what they leave out and say so.
#include <ATen/ATen.h>

#include <cmath>

#include <gtest/gtest.h>

#include "checks/check_context.h"
#include "checks/check_test_support.h"
#include "checks/faults/fault.h"
#include "checks/reference/number_format.h"
#include "checks/reference/reference_layer.h"
#include "checks/reference_run.h"

namespace attn {
namespace {

const std::vector<std::string> kReferenceChecks{"reference-forward", "reference-weights", "reference-backward"};

LayerFactory honest() {
  return [](const RunConfig& run) { return make_layer(run); };
}

RunConfig run_of(QkvLayout layout, Dtype dtype, bool causal) {
  RunConfig run = small_run();
  run.attention.qkv = layout;
  run.attention.bias = causal;
  run.attention.causal = causal;
  run.dtype = dtype;
  return run;
}

constexpr std::array kLayouts{QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate};
constexpr std::array kDtypes{Dtype::kFloat32, Dtype::kFloat64, Dtype::kBFloat16, Dtype::kFloat16};

TEST(ReferenceChecks, PassEveryHonestLayerInEveryPrecision) {
  for (const QkvLayout layout : kLayouts) {
    for (const Dtype dtype : kDtypes) {
      for (const bool causal : {false, true}) {
        const auto results = judge(run_of(layout, dtype, causal), honest(), kReferenceChecks);
        EXPECT_EQ(with_status(results, CheckStatus::kPass).size(), 3u)
            << to_string(layout) << " " << to_string(dtype) << "\n"
            << describe(results);
      }
    }
  }
}

TEST(ReferenceChecks, PassASingleHeadOfAnotherWidth) {
  RunConfig run = small_run();
  run.attention.module = ModuleKind::kSingleHead;
  run.attention.H = 1;
  run.attention.given_d_k = 5;
  run.attention.qkv = QkvLayout::kSeparate;
  const auto results = judge(run, honest(), kReferenceChecks);
  EXPECT_EQ(with_status(results, CheckStatus::kPass).size(), 3u) << describe(results);
}

RunConfig with_everything(Dtype dtype) {
  RunConfig run = small_run();
  AttentionConfig& config = run.attention;
  config.H = 6;
  config.given_H_kv = 3;
  config.given_d_k = 4;
  config.bias = true;
  config.given_output_bias = false;
  config.rope = RopeConfig{};
  config.window = 4;
  config.mask = DilatedMask{2};
  config.qk_norm = config.alibi = config.sink = true;
  config.given_scale = 0.3;
  config.softcap = 2.0;
  run.padding = PaddingSide::kLeft;
  run.lengths = {7, 4};
  run.dtype = dtype;
  return run;
}

RunConfig with_a_memory(Dtype dtype) {
  RunConfig run = small_run();
  run.attention.causal = false;
  run.attention.qkv = QkvLayout::kSeparate;
  run.memory_length = 5;
  run.padding = PaddingSide::kRight;
  run.lengths = {5, 3};
  run.dtype = dtype;
  return run;
}

TEST(ReferenceChecks, PassEveryHonestLayerWithEverythingAndWithAMemory) {
  for (const Dtype dtype : kDtypes) {
    for (const RunConfig& run : {with_everything(dtype), with_a_memory(dtype)}) {
      const auto results = judge(run, honest(), kReferenceChecks);
      EXPECT_EQ(with_status(results, CheckStatus::kPass).size(), 3u) << to_string(dtype) << "\n" << describe(results);
    }
  }
}

TEST(ReferenceChecks, CompareTheGradientOfTheMemoryToo) {
  const auto results = judge(with_a_memory(Dtype::kFloat64), honest(), kReferenceChecks);
  EXPECT_EQ(find(results, "reference-weights").compared, 2 * 3 * 7 * 5);
  EXPECT_EQ(find(results, "reference-backward").compared, 2 * 7 * 12 + 2 * 5 * 12 + 4 * 12 * 12);
}

TEST(SdpaParity, SaysWhatLibTorchsFunctionHasNot) {
  for (const bool sink : {false, true}) {
    RunConfig run = small_run();
    run.attention.sink = sink;
    if (!sink) run.attention.softcap = 2.0;
    for (const CheckResult& result : judge(run, honest(), {"sdpa-forward", "sdpa-backward"})) {
      EXPECT_EQ(result.status, CheckStatus::kNotApplicable);
      EXPECT_EQ(result.detail, sink ? "LibTorch's function has no sink" : "LibTorch's function has no softcap");
    }
  }
}

TEST(SdpaParity, PassesGroupedTurnedBiasedAndPaddedHeadsAndAMemory) {
  for (const Dtype dtype : kDtypes) {
    RunConfig run = with_everything(dtype);
    run.attention.softcap.reset();
    run.attention.sink = false;
    for (const RunConfig& honest_run : {run, with_a_memory(dtype)}) {
      const auto results = judge(honest_run, honest(), {"sdpa-forward", "sdpa-backward"});
      EXPECT_EQ(with_status(results, CheckStatus::kPass).size(), 2u) << to_string(dtype) << "\n" << describe(results);
    }
  }
}

TEST(ReferenceChecks, CompareEveryNumber) {
  RunConfig run = small_run();
  run.dtype = Dtype::kFloat64;
  run.attention.bias = true;
  const auto results = judge(run, honest(), kReferenceChecks);
  EXPECT_EQ(find(results, "reference-forward").compared, 2 * 7 * 12);
  EXPECT_EQ(find(results, "reference-weights").compared, 2 * 3 * 7 * 7);
  EXPECT_EQ(find(results, "reference-backward").compared, 2 * 7 * 12 + 36 * 12 + 36 + 12 * 12 + 12);
  for (const CheckResult& result : results) EXPECT_LE(*result.limit, 1e-10) << result.name;
}

TEST(ReferenceChecks, HoldFloat32ToTheRoundingOfThePlainFormula) {
  const auto results = judge(small_run(), honest(), kReferenceChecks);
  for (const CheckResult& result : results) {
    EXPECT_GT(*result.measured, 0.0) << result.name;
    EXPECT_LE(*result.limit, 2e-5) << result.name;
    const bool is_gradient = result.name == "reference-backward";
    const std::string reason = is_gradient ? "two roundings of every input" : "plain formula's error in float32";
    EXPECT_NE(result.limit_reason.find(reason), std::string::npos) << result.limit_reason;
    EXPECT_NE(result.detail.find("float64 "), std::string::npos) << result.detail;
  }
}

/// One weight's gradient is a sum over 24 tokens that nearly cancels: LibTorch's kernel and the plain formula round it
/// differently, by much more than one rounding of the sum.
TEST(ReferenceChecks, PassHonestGradientsWhoseTermsCancel) {
  RunConfig run = small_run();
  run.B = 4;
  run.T = 6;
  run.seed = 995563;
  run.attention.module = ModuleKind::kSingleHead;
  run.attention.d_model = run.attention.H = 1;
  run.attention.given_d_k.reset();
  run.attention.bias = run.attention.causal = false;
  run.attention.mask = PrefixMask{5};
  run.attention.engine = Engine::kSdpa;
  const auto results = judge(run, honest(), {"reference-backward"});
  EXPECT_EQ(with_status(results, CheckStatus::kPass).size(), 1u) << describe(results);
  EXPECT_LE(*results[0].limit, 1e-6);
}

/// Adds `off` to one number of the output, in float32 alone or always.
struct OneNumberOff : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    const at::Tensor output = MultiHeadAttentionImpl::project_output(merged).clone();
    if (output.scalar_type() == at::kFloat || in_float64_too) output[1][3][5] += off;
    return output;
  }
  double off = 1e-4;
  bool in_float64_too = true;
};

LayerFactory one_number_off(double off, bool in_float64_too) {
  return [=](const RunConfig& run) {
    return make_layer(run, LayerMaker([=](const AttentionConfig& config) {
                        auto layer = std::make_shared<OneNumberOff>(config);
                        layer->off = off;
                        layer->in_float64_too = in_float64_too;
                        return layer;
                      }));
  };
}

TEST(ReferenceChecks, SayWhereTheNumberIsThatIsOff) {
  const auto results = judge(small_run(), one_number_off(1e-4, true), kReferenceChecks);
  const CheckResult& forward = find(results, "reference-forward");
  EXPECT_EQ(forward.status, CheckStatus::kFail);
  EXPECT_EQ(forward.where_first, "(batch 1, token 3, channel 5)");
  EXPECT_EQ(forward.wrong, 2);  // once in float32, once in float64
  EXPECT_NE(forward.detail.find("the difference stays in float64 (0.0001): a bug, not rounding"), std::string::npos)
      << forward.detail;
  EXPECT_EQ(find(results, "reference-weights").status, CheckStatus::kPass);
  EXPECT_EQ(find(results, "reference-backward").status, CheckStatus::kPass);
}

TEST(ReferenceChecks, SeeInFloat64WhatRoundingHidesInFloat32) {
  const auto results = judge(small_run(), one_number_off(1e-9, true), kReferenceChecks);
  const CheckResult& forward = find(results, "reference-forward");
  EXPECT_EQ(forward.status, CheckStatus::kFail);
  EXPECT_EQ(forward.where_first, "float64 (batch 1, token 3, channel 5)");
}

TEST(ReferenceChecks, CallADifferenceRoundingWhenItVanishesInFloat64) {
  const auto results = judge(small_run(), one_number_off(1e-4, false), kReferenceChecks);
  const CheckResult& forward = find(results, "reference-forward");
  EXPECT_EQ(forward.status, CheckStatus::kFail);
  EXPECT_NE(forward.detail.find(": it vanishes there, so it is rounding"), std::string::npos) << forward.detail;
}

TEST(ReferenceChecks, FailOnANumberThatIsNotFinite) {
  const auto results = judge(small_run(), one_number_off(std::nan(""), true), kReferenceChecks);
  const CheckResult& forward = find(results, "reference-forward");
  EXPECT_EQ(forward.status, CheckStatus::kFail);
  EXPECT_NE(forward.detail.find("1 value is not finite"), std::string::npos) << forward.detail;
}

TEST(ReferenceChecks, SeeAWrongLayoutOfTheFusedProjection) {
  const auto results = judge(small_run(), fault_named("fused-thirds-per-head").plant(), kReferenceChecks);
  EXPECT_EQ(with_status(results, CheckStatus::kFail).size(), 3u) << describe(results);
}

TEST(ReferenceChecks, SeeADoubledGradientInTheBackwardPassAlone) {
  const auto results = judge(small_run(), fault_named("gradient-doubled").plant(), kReferenceChecks);
  EXPECT_EQ(with_status(results, CheckStatus::kFail), std::set<std::string>{"reference-backward"}) << describe(results);
}

TEST(ReferenceChecks, SayWhichGradientDoesNotArrive) {
  const auto results = judge(small_run(), fault_named("gradient-frozen-output-weight").plant(), kReferenceChecks);
  EXPECT_NE(find(results, "reference-backward").detail.find("no gradient of c_proj.weight arrives"), std::string::npos)
      << describe(results);
}

/// The layer as somebody else's: it hides what it is told to.
class Hiding : public LayerSubject {
 public:
  Hiding(const RunConfig& run, bool steps, std::string parameter)
      : LayerSubject(run, honest()), shows_steps_(steps), hidden_(std::move(parameter)) {}

  std::optional<CapturedSteps> forward_with_steps(const AttentionInput& input) override {
    return shows_steps_ ? LayerSubject::forward_with_steps(input) : std::nullopt;
  }
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() override {
    auto parameters = LayerSubject::named_parameters();
    std::erase_if(parameters, [&](const auto& parameter) { return parameter.first == hidden_; });
    return parameters;
  }
  std::unique_ptr<Subject> rebuild(Dtype) override { return nullptr; }

 private:
  bool shows_steps_;
  std::string hidden_;
};

std::vector<CheckResult> judge_hiding(bool steps, const std::string& parameter) {
  Hiding subject(small_run(), steps, parameter);
  VerifyOptions options;
  options.only = kReferenceChecks;
  return run_checks(subject, small_run(), {input_of(small_run())}, options);
}

TEST(ReferenceChecks, DoNotApplyToALayerThatHidesAParameter) {
  for (const CheckResult& result : judge_hiding(true, "c_proj.weight")) {
    EXPECT_EQ(result.status, CheckStatus::kNotApplicable) << result.name;
    EXPECT_EQ(result.detail, "the layer shows no c_proj.weight");
  }
}

TEST(ReferenceChecks, JudgeOutputAndGradientsOfALayerThatShowsNoSteps) {
  const auto results = judge_hiding(false, "");
  EXPECT_EQ(find(results, "reference-forward").status, CheckStatus::kPass) << describe(results);
  EXPECT_EQ(find(results, "reference-backward").status, CheckStatus::kPass) << describe(results);
  EXPECT_EQ(find(results, "reference-weights").status, CheckStatus::kNotApplicable);
  EXPECT_EQ(find(results, "reference-weights").detail, "the layer shows no weights");
  EXPECT_EQ(find(results, "reference-forward").detail, "the layer cannot be rebuilt in float64");
}

// ---- what is left out ----

struct Sampled {
  explicit Sampled(const RunConfig& config)
      : run(config), subject(run, honest()), context(subject, run, {input_of(run)}) {}
  ReferenceSample with_budget(double share_of_whole) {
    return reference_sample(context, share_of_whole * reference_layer_cost(run.attention, run.B, run.T, run.T));
  }
  RunConfig run;
  LayerSubject subject;
  CheckContext context;
};

RunConfig larger_run() {
  RunConfig run = small_run();
  run.B = 4;
  run.T = 15;
  return run;
}

TEST(ReferenceSample, IsEverythingWhereTheBudgetAllows) {
  Sampled sampled(larger_run());
  const ReferenceSample sample = sampled.with_budget(1.0);
  EXPECT_EQ(sample.words, "");
  EXPECT_TRUE(sample.rows.empty());
  EXPECT_TRUE(sample.input.x.equal(sampled.context.x()));
}

TEST(ReferenceSample, IsOneItemThenSomeRowsThenAShorterInput) {
  Sampled sampled(larger_run());
  const ReferenceSample item = sampled.with_budget(0.3);
  const std::string number = std::to_string(item.item);
  EXPECT_EQ(item.words, "1 of 4 items, item " + number);
  EXPECT_TRUE(item.input.x.equal(sampled.context.x().narrow(0, item.item, 1)));

  const ReferenceSample rows = sampled.with_budget(0.2);
  EXPECT_EQ(rows.words, std::to_string(rows.rows.size()) + " of 15 rows of item " + number);
  EXPECT_GT(rows.rows.size(), 1u);
  EXPECT_LT(rows.rows.size(), 15u);
  EXPECT_TRUE(std::is_sorted(rows.rows.begin(), rows.rows.end()));
  EXPECT_EQ(std::set<std::int64_t>(rows.rows.begin(), rows.rows.end()).size(), rows.rows.size());

  const ReferenceSample tokens = sampled.with_budget(0.05);
  EXPECT_EQ(tokens.words,
            std::to_string(tokens.input.x.size(1)) + " of 15 tokens of item " + number + " as a shorter input");
  EXPECT_TRUE(tokens.rows.empty());

  EXPECT_EQ(sampled.with_budget(0.0).input.x.size(1), 1);
}

TEST(ReferenceSample, TakesMemoryAndPaddingAlong) {
  RunConfig run = with_a_memory(Dtype::kFloat32);
  run.T = 15;
  run.memory_length = 9;
  run.lengths = {9, 4};
  const LayerFactory factory = honest();
  LayerSubject subject(run, factory);
  const CheckContext context(subject, run, whole_input_of(run));
  const double whole = reference_layer_cost(run.attention, 2, 9, 15);
  const ReferenceSample item = reference_sample(context, 0.6 * whole);
  EXPECT_EQ(item.words, "1 of 2 items, item " + std::to_string(item.item));
  EXPECT_TRUE(item.input.memory.equal(context.input().memory.narrow(0, item.item, 1)));
  EXPECT_TRUE(item.input.real_keys.equal(context.input().real_keys.narrow(0, item.item, 1)));

  const ReferenceSample tokens = reference_sample(context, 0.1 * whole);
  const std::int64_t count = tokens.input.x.size(1);
  EXPECT_EQ(tokens.words, std::to_string(count) + " of 15 tokens and " + std::to_string(count) + " of 9 keys of item " +
                              std::to_string(item.item) + " as a shorter input");
  EXPECT_EQ(tokens.input.memory.size(1), count);
  EXPECT_EQ(tokens.input.real_keys.size(1), count);
}

TEST(ReferenceSample, DependsOnTheSeed) {
  RunConfig run = larger_run();
  std::set<std::vector<std::int64_t>> rows;
  for (run.seed = 1; run.seed <= 5; ++run.seed) rows.insert(Sampled(run).with_budget(0.2).rows);
  EXPECT_GT(rows.size(), 1u);
}

std::vector<CheckResult> judge_quickly(const RunConfig& run, const LayerFactory& factory) {
  LayerSubject subject(run, factory);
  VerifyOptions options;
  options.only = kReferenceChecks;
  options.quick = true;
  return run_checks(subject, run, whole_input_of(run), options);
}

TEST(ReferenceChecks, JudgeSomeRowsOfALongInputAndSaySo) {
  RunConfig run = small_run();
  run.B = 2;
  run.T = 600;
  run.attention.d_model = 96;
  run.attention.max_seq_len = 600;
  for (const CheckResult& result : judge_quickly(run, honest())) {
    EXPECT_EQ(result.status, CheckStatus::kPass) << result.name << ": " << result.detail;
    EXPECT_NE(result.detail.find(" of 600 rows of item "), std::string::npos) << result.detail;
  }
  // Every row is wrong, so the first that is judged is.
  const auto wrong = judge_quickly(run, fault_named("kv-swapped").plant());
  Sampled sampled(run);
  const ReferenceSample sample = reference_sample(sampled.context, kReferenceLayerMultiplyAdds / 20);
  EXPECT_EQ(find(wrong, "reference-forward").where_first, "(batch " + std::to_string(sample.item) + ", token " +
                                                              std::to_string(sample.rows.front()) + ", channel 0)");
  EXPECT_EQ(with_status(wrong, CheckStatus::kFail).size(), 3u) << describe(wrong);
}

// ---- the limit that other checks use ----

TEST(OutputBudget, IsTheRuleForTheOutputOfTheRun) {
  Sampled sampled(small_run());
  const ErrorBudget budget = sampled.context.output_budget();
  const double largest = sampled.context.reference().loops().output.abs().max().item<double>();
  EXPECT_GE(budget.max_abs, epsilon_of(at::kFloat) * largest);
  EXPECT_LE(budget.max_abs, cap_of({largest, 1.0}, at::kFloat, 12).max_abs);
  EXPECT_NE(budget.why.find("plain formula"), std::string::npos) << budget.why;
}

TEST(OutputBudget, IsTheCapWhereTheParametersAreNotShown) {
  const RunConfig run = small_run();
  Hiding subject(run, true, "c_attn.weight");
  CheckContext context(subject, run, {input_of(run)});
  const double largest = subject.forward({input_of(run)}).abs().max().item<double>();
  EXPECT_DOUBLE_EQ(context.output_budget().max_abs, 64 * epsilon_of(at::kFloat) * std::sqrt(12.0) * largest);
}

}  // namespace
}  // namespace attn
