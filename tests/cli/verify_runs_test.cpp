#include "cli/verify_runs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/failure.h"
#include "cli/verify_lists.h"
#include "config/config_file.h"
#include "core/error.h"

namespace attn {
namespace {

VerifyResult two_checks() {
  VerifyResult result;
  result.checks.resize(2);
  result.checks[0].name = "causality";
  result.checks[0].status = CheckStatus::kNotApplicable;
  result.checks[0].detail = "the layer is not causal";
  result.checks[1].name = "row-sums";
  result.checks[1].status = CheckStatus::kPass;
  return result;
}

TEST(RequiredChecks, FailWhenTheyDoNotApply) {
  VerifyResult result = two_checks();
  require_checks(result, {"causality"}, false);
  EXPECT_EQ(result.checks[0].status, CheckStatus::kFail);
  EXPECT_EQ(result.checks[0].detail, "required, but does not apply: the layer is not causal");
  EXPECT_EQ(result.checks[1].status, CheckStatus::kPass);
}

TEST(RequiredChecks, AreAllOfThemWhenStrict) {
  VerifyResult result = two_checks();
  require_checks(result, {}, true);
  EXPECT_EQ(result.checks[0].status, CheckStatus::kFail);
  EXPECT_EQ(result.checks[1].status, CheckStatus::kPass);
}

TEST(RequiredChecks, LeaveTheOthersAlone) {
  VerifyResult result = two_checks();
  require_checks(result, {"row-sums"}, false);
  EXPECT_EQ(result.checks[0].status, CheckStatus::kNotApplicable);
}

class PlannedRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "attn_plan_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    write("b.json", kTiny);
    write("a.json", kTiny);
    write(".hidden.json", kTiny);
    write("notes.txt", "no config");
    std::filesystem::create_directory(folder_ / "inner");
    write("inner/c.json", kTiny);
    std::filesystem::create_directory(folder_ / "empty");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static std::string refusal(const std::vector<std::string>& configs, const std::vector<std::string>& set_words = {},
                             const std::vector<std::string>& sweeps = {}) {
    std::istringstream in;
    try {
      plan_runs(configs, set_words, sweeps, in);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "(accepted)";
  }

  static constexpr const char* kTiny = R"({"B": 2, "T": 8, "d_model": 16, "H": 4})";
  std::filesystem::path folder_;
  std::istringstream in_;
};

TEST_F(PlannedRuns, AFolderStandsForItsConfigsInOrderOfTheirNames) {
  const std::vector<PlannedRun> runs = plan_runs({folder_.string()}, {}, {}, in_);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].source, path("a.json"));
  EXPECT_EQ(runs[1].source, path("b.json"));
}

TEST_F(PlannedRuns, AFolderWithoutAConfigIsAFailureOfItsOwn) {
  const std::vector<PlannedRun> runs = plan_runs({path("empty"), path("a.json")}, {}, {}, in_);
  ASSERT_EQ(runs.size(), 2u);
  ASSERT_TRUE(runs[0].failure);
  EXPECT_EQ(describe(runs[0].failure).text, path("empty") + ": no *.json file in this folder, expected configs");
  EXPECT_EQ(describe(runs[0].failure).status, ExitStatus::kUsage);
  EXPECT_TRUE(runs[1].config);
}

TEST_F(PlannedRuns, ABrokenConfigDoesNotStopTheOthers) {
  write("a.json", "{");
  const std::vector<PlannedRun> runs = plan_runs({path("a.json"), path("gone.json"), path("b.json")}, {}, {}, in_);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(describe(runs[0].failure).status, ExitStatus::kUsage);
  EXPECT_EQ(describe(runs[1].failure).status, ExitStatus::kFailure);
  EXPECT_TRUE(runs[2].config);
}

TEST_F(PlannedRuns, EachConfigMeetsEachCombinationOfTheSweeps) {
  const std::vector<PlannedRun> runs =
      plan_runs({path("a.json"), path("b.json")}, {"B=1"}, {"T=4,5", "dtype=float64"}, in_);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[1].source, path("a.json"));
  EXPECT_EQ(runs[1].sweep, (std::vector<std::string>{"T=5", "dtype=float64"}));
  EXPECT_EQ(runs[1].config->T, 5);
  EXPECT_EQ(runs[1].config->B, 1);
  EXPECT_EQ(runs[2].source, path("b.json"));
}

TEST_F(PlannedRuns, StandardInputServesAllRunsOfASweep) {
  in_.str(kTiny);
  const std::vector<PlannedRun> runs = plan_runs({"-"}, {}, {"T=4,5"}, in_);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].config->T, 4);
  EXPECT_EQ(runs[1].config->T, 5);
  EXPECT_EQ(refusal({"-", "-"}), "standard input (-) is given more than once, expected once");
}

TEST_F(PlannedRuns, OptionsAloneAreEnough) {
  EXPECT_EQ(refusal({}),
            "no config given, expected CONFIG (a JSON file, a folder of them, or - for standard input) or "
            "--set KEY=VALUE");
  const std::vector<PlannedRun> runs = plan_runs({}, {"B=1", "d_model=8", "H=2"}, {"T=3,4"}, in_);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].config->T, 4);
}

TEST_F(PlannedRuns, AWrongSweptValueIsTheErrorOfItsRun) {
  const std::vector<PlannedRun> runs = plan_runs({path("a.json")}, {}, {"T=4,none"}, in_);
  EXPECT_TRUE(runs[0].config);
  EXPECT_EQ(describe(runs[1].failure).text.substr(0, 13), "--sweep: /T: ");
}

TEST(RuledOutChecks, AreThoseThatFindNothingToJudge) {
  const std::vector<std::vector<std::string>> cases = {{},
                                                       {"causal=false"},
                                                       {"T=1"},
                                                       {"H=1"},
                                                       {"dropout=0.25"},
                                                       {"B=1"},
                                                       {"H_kv=1"},
                                                       {R"(rope={"style": "half"})"},
                                                       {"window=2"},
                                                       {"padding=left", "lengths=[5,2]"},
                                                       {"sink=true"},
                                                       {"softcap=2"},
                                                       {"alibi=true"},
                                                       {"engine=sdpa"},
                                                       {"qkv=separate", R"(memory={"T_k": 3})"},
                                                       {R"(cache={"prefill": 3, "steps": 2})"}};
  for (const std::vector<std::string>& set_words : cases) {
    const RunConfig config = parse_config(R"({"B": 2, "T": 5, "d_model": 8, "H": 2})", "test", "", set_words);
    for (const CheckResult& check : verify_attention(config).checks) {
      EXPECT_EQ(!why_ruled_out(check.name, config).empty(), check.status == CheckStatus::kNotApplicable)
          << check.name << " of " << (set_words.empty() ? "the plain config" : set_words[0]) << ": " << check.detail;
    }
  }
}

}  // namespace
}  // namespace attn
