#include "checks/run_checks.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <gtest/gtest.h>

#include "checks/check_test_support.h"
#include "core/error.h"

namespace attn {
namespace {

using Names = std::set<std::string>;

/// A subject that shows nothing beside its output: y = x, or what `forward` is given.
class Opaque : public Subject {
 public:
  Opaque(AttentionConfig config, std::function<at::Tensor(const at::Tensor&)> function)
      : config_(config), function_(std::move(function)) {}
  const AttentionConfig& config() const override { return config_; }
  at::Tensor forward(const AttentionInput& input) override { return function_(input.x); }
  std::optional<CapturedSteps> forward_with_steps(const AttentionInput&) override { return std::nullopt; }
  std::optional<std::vector<DecodedPiece>> forward_in_pieces(const AttentionInput&,
                                                             const std::vector<std::int64_t>&) override {
    return std::nullopt;
  }
  std::optional<CapturedSteps> attend(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                      const std::optional<at::Tensor>&, const at::Tensor&) override {
    return std::nullopt;
  }
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() override { return {}; }
  void train(bool) override {}
  std::unique_ptr<Subject> without_masks() override { return nullptr; }
  std::unique_ptr<Subject> with_dropout(double) override { return nullptr; }
  std::unique_ptr<Subject> rebuild(Dtype) override { return nullptr; }

 private:
  AttentionConfig config_;
  std::function<at::Tensor(const at::Tensor&)> function_;
};

std::vector<CheckResult> judge_opaque(const std::function<at::Tensor(const at::Tensor&)>& function) {
  const RunConfig run = small_run();
  Opaque subject(run.attention, function);
  return run_checks(subject, run, {input_of(run)});
}

TEST(CheckList, EveryCheckSaysWhatItAsksAndNeeds) {
  for (const CheckInfo& info : check_list()) {
    EXPECT_NE(info.question, "") << info.name;
    EXPECT_NE(info.needs, "") << info.name;
    EXPECT_GT(info.explanation.size(), info.question.size()) << info.name;
  }
}

TEST(CheckStatusWords, AreThoseOfTheReports) {
  EXPECT_EQ(to_string(CheckStatus::kPass), "pass");
  EXPECT_EQ(to_string(CheckStatus::kFail), "fail");
  EXPECT_EQ(to_string(CheckStatus::kNotApplicable), "n/a");
  EXPECT_EQ(to_string(CheckStatus::kError), "error");
}

TEST(VerifyAttention, JudgesTheLayerOfAConfig) {
  const VerifyResult result = verify_attention(small_run());
  EXPECT_EQ(with_status(result.checks, CheckStatus::kNotApplicable),
            (Names{"dropout", "gqa-map", "padding", "rope-relative", "sink", "window"}));
  EXPECT_EQ(result.count(CheckStatus::kPass), static_cast<std::int64_t>(check_list().size()) - 6);
  EXPECT_EQ(result.explained_by, "");
  EXPECT_EQ(result.threads, 1);
  EXPECT_EQ(result.torch_version, torch_version());
  EXPECT_EQ(result.config.T, 7);
}

TEST(VerifyAttention, GivesTheSameNumbersTwice) {
  RunConfig run = small_run();
  run.attention.dropout = 0.2;
  const VerifyResult first = verify_attention(run), second = verify_attention(run);
  for (std::size_t index = 0; index < first.checks.size(); ++index) {
    EXPECT_EQ(first.checks[index].measured, second.checks[index].measured) << first.checks[index].name;
    EXPECT_EQ(first.checks[index].detail, second.checks[index].detail);
  }
}

TEST(VerifyAttention, RefusesAnUnknownCheckWithTheNearestKnownOne) {
  for (const auto member : {&VerifyOptions::only, &VerifyOptions::skip}) {
    VerifyOptions options;
    options.*member = {"causality", "row-sum"};
    try {
      verify_attention(small_run(), options);
      FAIL() << "nothing was thrown";
    } catch (const ConfigError& error) {
      EXPECT_STREQ(error.what(), "unknown check \"row-sum\"; did you mean \"row-sums\"?");
    }
  }
}

TEST(VerifyAttention, RunsOnlyWhatIsAskedForInTheOrderOfTheListAndTellsItsProgress) {
  VerifyOptions options;
  options.only = {"scale", "shapes", "dropout"};
  options.skip = {"scale"};
  std::vector<std::string> told;
  options.progress = [&](const std::string& name, std::size_t index, std::size_t total) {
    told.push_back(name + " " + std::to_string(index) + " of " + std::to_string(total));
  };
  const VerifyResult result = verify_attention(small_run(), options);
  EXPECT_EQ(told, (std::vector<std::string>{"shapes 0 of 2", "dropout 1 of 2"}));
  ASSERT_EQ(result.checks.size(), 2U);
  EXPECT_EQ(result.checks[1].status, CheckStatus::kNotApplicable);  // asked for, and still n/a
  EXPECT_EQ(result.checks[1].detail, "dropout is 0");
}

TEST(VerifyAttention, LeavesLibTorchsSwitchesAsTheyWere) {
  at::globalContext().setSDPUseFlash(false);
  verify_attention(small_run());
  EXPECT_FALSE(at::globalContext().userEnabledFlashSDP());
  EXPECT_TRUE(at::globalContext().userEnabledMathSDP());
  EXPECT_TRUE(at::GradMode::is_enabled());
  at::globalContext().setSDPUseFlash(true);
}

/// What needs nothing but outputs.
const Names kOutputChecks{"batch-independence", "causality", "causality-gradient", "determinism",
                          "effective-mask",     "finite",    "nan-propagation",    "truncation"};

/// Causal, and every token counts: the mean of all tokens up to one's own.
at::Tensor running_mean(const at::Tensor& x) {
  const at::Tensor counts = at::arange(1, x.size(1) + 1, x.options()).view({1, -1, 1});
  return x.cumsum(1) / counts;
}

TEST(RunChecks, JudgesASubjectThatShowsNothingByItsOutputs) {
  const auto results = judge_opaque(running_mean);
  EXPECT_EQ(with_status(results, CheckStatus::kPass), kOutputChecks) << describe(results);
  EXPECT_EQ(with_status(results, CheckStatus::kNotApplicable).size(), check_list().size() - kOutputChecks.size());
}

TEST(RunChecks, ALayerThatPassesEachTokenThroughIsCausalButNoAttention) {
  const auto results = judge_opaque([](const at::Tensor& x) { return x * 2; });
  EXPECT_EQ(with_status(results, CheckStatus::kFail),
            (Names{"causality-gradient", "effective-mask", "nan-propagation"}))
      << describe(results);
  EXPECT_NE(
      find(results, "effective-mask").detail.find("visible keys take no part, the first is (batch 0, query 1, key 0)"),
      std::string::npos)
      << describe(results);
}

TEST(RunChecks, ASubjectThatThrowsFails) {
  const auto results = judge_opaque([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no\nstack"); });
  EXPECT_EQ(with_status(results, CheckStatus::kFail), kOutputChecks) << describe(results);
  EXPECT_EQ(find(results, "determinism").detail, "the layer threw: no");
}

TEST(RunChecks, AMachineWithoutMemorySaysNothingAboutTheLayer) {
  const auto results = judge_opaque([](const at::Tensor&) -> at::Tensor { throw ResourceError("not enough memory"); });
  EXPECT_EQ(with_status(results, CheckStatus::kError), kOutputChecks) << describe(results);
}

TEST(RunChecks, AnOutputOfAnotherDtypeFails) {
  const auto results = judge_opaque([](const at::Tensor& x) { return x.to(at::kDouble); });
  EXPECT_EQ(find(results, "causality").status, CheckStatus::kFail);
  EXPECT_NE(find(results, "causality").detail.find("got (18, 7, 12) float64"), std::string::npos) << describe(results);
}

TEST(RunChecks, NanNeverPassesAsCausal) {
  const auto results = judge_opaque([](const at::Tensor& x) { return x * std::nan(""); });
  Names failing = kOutputChecks;
  failing.erase("nan-propagation");  // it does reach every output
  EXPECT_EQ(with_status(results, CheckStatus::kFail), failing) << describe(results);
}

TEST(RunChecks, LongSequencesAreSampledAtEveryPlaceThatMatters) {
  RunConfig run = small_run();
  run.B = 1;
  run.T = 3000;
  run.attention.d_model = 1;
  run.attention.H = 1;
  run.attention.given_d_k = 200000;  // dear on paper, so that a sample is taken
  run.attention.max_seq_len = run.T;
  Opaque subject(run.attention, [](const at::Tensor& x) { return x * 2; });
  VerifyOptions options;
  options.only = {"causality"};
  const auto results = run_checks(subject, run, {input_of(run)}, options);
  EXPECT_EQ(results.front().status, CheckStatus::kPass);
  EXPECT_NE(results.front().unit.find(" of 2999 cuts, one of 3 changes each"), std::string::npos) << describe(results);
  // The one token that a sample must not miss: output 1022 sees token 1023, which only a cut at 1023 shows.
  Opaque leaking(run.attention, [](const at::Tensor& x) {
    at::Tensor y = x * 2;
    y.select(1, 1022).add_(x.select(1, 1023), 1e-6);
    return y;
  });
  const auto leak = run_checks(leaking, run, {input_of(run)}, options);
  EXPECT_EQ(leak.front().status, CheckStatus::kFail) << describe(leak);
  EXPECT_EQ(leak.front().where_first, "(batch 0, token 1022, channel 0)");
}

}  // namespace
}  // namespace attn
