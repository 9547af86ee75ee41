#include "report/json_report.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/records.h"

namespace attn {
namespace {

using nlohmann::json;
using testing::make_check;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Json, BeginsWithVersionsConfigAndMachine) {
  const json record = json::parse(to_json_text(testing::make_trace()));
  EXPECT_EQ(record["schema_version"], kJsonSchemaVersion);
  EXPECT_EQ(record["kind"], "trace");
  EXPECT_EQ(record["tool"], "attn-cli");
  EXPECT_EQ(record["tool_version"], ATTN_TEST_VERSION);
  EXPECT_EQ(record["torch_version"], "2.13.0");
  EXPECT_EQ(record["config"]["d_model"], 4);
  EXPECT_EQ(record["device"], "cpu");
  EXPECT_EQ(record["threads"], 1);
}

TEST(Json, WritesNonFiniteNumbersAsWords) {
  AttentionTrace trace = testing::make_trace();
  trace.steps[0].stats.min = -kInfinity;
  trace.steps[0].stats.max = kInfinity;
  trace.steps[0].stats.mean = kNan;
  trace.steps[0].values = {0.5, kNan, -kInfinity};
  trace.summary.loss = kNan;
  const json record = json::parse(to_json_text(trace));
  EXPECT_EQ(record["steps"][0]["min"], "-inf");
  EXPECT_EQ(record["steps"][0]["max"], "inf");
  EXPECT_EQ(record["steps"][0]["mean"], "nan");
  EXPECT_EQ(record["steps"][0]["values"], json({0.5, "nan", "-inf"}));
  EXPECT_EQ(record["summary"]["loss"], "nan");
}

TEST(Json, OfATensorWithoutFiniteNumbersHasNoRange) {
  AttentionTrace trace = testing::make_trace();
  trace.steps[0].stats = {std::nullopt, std::nullopt, std::nullopt, std::nullopt, 12, 0};
  const json step = json::parse(to_json_text(trace))["steps"][0];
  EXPECT_TRUE(step["min"].is_null());
  EXPECT_EQ(step["nan"], 12);
}

TEST(Json, KeepsEveryDigit) {
  AttentionTrace trace = testing::make_trace();
  trace.summary.loss = 0.1 + 0.2;
  EXPECT_EQ(json::parse(to_json_text(trace))["summary"]["loss"].get<double>(), 0.1 + 0.2);
}

TEST(Json, CarriesValuesOnlyWhereTheRecordDoes) {
  EXPECT_FALSE(json::parse(to_json_text(testing::make_trace()))["steps"][0].contains("values"));
}

TEST(Json, OfAVerificationCountsAndJudges) {
  CheckResult check = make_check("causality", CheckStatus::kFail, "moved");
  check.measured = kNan;
  check.where_first = "(batch 0, query 2)";
  const json record = json::parse(to_json_text(
      testing::make_run(testing::make_verify_result({check, make_check("dropout", CheckStatus::kNotApplicable)}))));
  EXPECT_EQ(record["checks"][0]["config"], "small.json");
  EXPECT_EQ(record["checks"][0]["dtype"], "float32");
  EXPECT_EQ(record["checks"][0]["status"], "fail");
  EXPECT_EQ(record["checks"][0]["measured"], "nan");
  EXPECT_TRUE(record["checks"][0]["limit"].is_null());
  EXPECT_EQ(record["checks"][0]["where"]["first"], "(batch 0, query 2)");
  EXPECT_EQ(record["checks"][1]["status"], "n/a");
  EXPECT_EQ(record["summary"], json({{"verdict", "failed"}, {"pass", 0}, {"fail", 1}, {"n/a", 1}, {"error", 0}}));
}

TEST(Json, OfAVerificationCarriesFaultExplanationAndMap) {
  CheckResult check = make_check("effective-mask", CheckStatus::kFail);
  check.map = DependencyMap{2,
                            3,
                            {PairState::kVisible, PairState::kLeak, PairState::kHidden, PairState::kVisible,
                             PairState::kHiddenWrong, PairState::kUnjudged}};
  VerifyResult result = testing::make_verify_result({check, make_check("shapes", CheckStatus::kPass)});
  result.fault = "mask-shift";
  result.explained_by = "mask shifted by +1";
  const json record = json::parse(to_json_text(testing::make_run(result, {"dtype=float64"})));
  EXPECT_EQ(record["fault"], "mask-shift");
  EXPECT_EQ(record["explained_by"], "mask shifted by +1");
  EXPECT_EQ(record["quick"], false);
  EXPECT_EQ(record["sweep"], json({"dtype=float64"}));
  EXPECT_EQ(record["checks"][0]["map"], json({{"queries", 2}, {"keys", 3}, {"rows", {"vL.", "vH?"}}}));
  EXPECT_FALSE(record["checks"][1].contains("map"));
}

TEST(Json, OfSeveralRunsHoldsEachAndTheirErrors) {
  const json record = json::parse(to_json_text(
      std::vector<VerifyRun>{testing::make_run(testing::make_verify_result({make_check("a", CheckStatus::kPass)})),
                             testing::make_broken_run("bad.json", "bad.json: /H: no")}));
  EXPECT_EQ(record["kind"], "verify_runs");
  EXPECT_EQ(record["runs"][0]["kind"], "verify");
  EXPECT_EQ(
      record["runs"][1],
      json({{"source", "bad.json"}, {"sweep", json::array()}, {"error", "bad.json: /H: no"}, {"exit_status", 2}}));
  EXPECT_EQ(record["summary"], json({{"verdict", "the config is wrong"},
                                     {"runs", 2},
                                     {"passed", 1},
                                     {"failed", 0},
                                     {"incomplete", 0},
                                     {"not_run", 1}}));
}

TEST(Json, OfASelfTestSaysWhatBecameOfEachFault) {
  SelfTestResult result =
      testing::make_self_test({testing::make_fault("caught", "scale"), testing::make_fault("survivor", ""),
                               testing::make_fault("missed", "scale"), testing::make_fault("none", "")});
  result.faults[0].measured = kInfinity;
  result.faults[2].missed_by = {"row-sums"};
  result.faults[3].not_applicable = "H is 1";
  const json record = json::parse(to_json_text(testing::make_self_test_run(result)));
  EXPECT_EQ(record["kind"], "self_test");
  EXPECT_EQ(record["faults"][0]["status"], "caught");
  EXPECT_EQ(record["faults"][0]["measured"], "inf");
  EXPECT_EQ(record["faults"][1]["status"], "survived");
  EXPECT_EQ(record["faults"][2]["status"], "missed");
  EXPECT_EQ(record["faults"][3]["status"], "n/a");
  EXPECT_EQ(record["summary"], json({{"verdict", "failed"},
                                     {"planted", 3},
                                     {"caught", 2},
                                     {"survived", 1},
                                     {"missed", 1},
                                     {"n/a", 1},
                                     {"false_alarms", 0}}));
}

TEST(Json, OfATraceListsItsCalls) {
  AttentionTrace trace = testing::make_trace();
  trace.calls = {{0, 0, 2, 0, 2, 64, ""}, {1, 2, 1, 1, 2, 96, "flash"}};
  const json record = json::parse(to_json_text(trace));
  EXPECT_EQ(record["calls"][0]["backend"], nullptr);
  EXPECT_EQ(record["calls"][1], json({{"call", 1},
                                      {"first_query", 2},
                                      {"queries", 1},
                                      {"first_key", 1},
                                      {"keys", 2},
                                      {"cache_bytes", 96},
                                      {"backend", "flash"}}));
}

TEST(Json, OfPicturesSaysWhatEachFileShows) {
  HeatmapIndex index;
  index.config = testing::small_config();
  index.step = "weights";
  index.rows = index.cols = 3;
  index.padded_keys = {{2}, {}};
  index.files = {{.file = "weights_b0.png", .heads = {0, 1}, .overview = true},
                 {.file = "weights_b0_h1.png", .heads = {1}, .key_heads = {0}, .cells = HeatmapFile::Cells{10, 20, 8}}};
  const json record = json::parse(to_json_text(index));
  EXPECT_EQ(record["step"], "weights");
  EXPECT_EQ(record["rows"], json({{"count", 3}, {"meaning", "queries"}}));
  EXPECT_EQ(record["files"][0]["shows"], "overview");
  EXPECT_FALSE(record["files"][0].contains("cells"));
  EXPECT_EQ(record["files"][1]["heads"], json({1}));
  EXPECT_EQ(record["files"][1]["key_heads"], json({0}));
  EXPECT_EQ(record["padded_keys"], json::parse("[[2], []]"));
  EXPECT_EQ(record["files"][1]["cells"], json({{"x", 10}, {"y", 20}, {"size", 8}}));
  EXPECT_EQ(record["files"][1]["scale"], json({{"low", 0.0}, {"high", 1.0}}));
}

TEST(Json, SurvivesPathsThatAreNotUtf8) {
  AttentionTrace trace = testing::make_trace();
  trace.config.source_name = "caf\xe9.json";
  EXPECT_NO_THROW(json::parse(to_json_text(trace)));
}

}  // namespace
}  // namespace attn
