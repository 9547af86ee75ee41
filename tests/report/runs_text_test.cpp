// Several runs in one report, and the verdict of all.
#include <gtest/gtest.h>

#include <sstream>

#include "report/records.h"
#include "report/text_report.h"

namespace attn {
namespace {

using testing::make_broken_run;
using testing::make_check;
using testing::make_run;
using testing::make_verify_result;

std::string text_of(const std::vector<VerifyRun>& runs, const TextOptions& options = {}) {
  std::ostringstream out;
  for (const VerifyRun& run : runs) write_block(out, run, options);
  write_summary(out, runs, options);
  return out.str();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

VerifyRun passing_run() {
  return make_run(make_verify_result({make_check("shapes", CheckStatus::kPass, "fine"),
                                      make_check("finite", CheckStatus::kPass, "fine too"),
                                      make_check("dropout", CheckStatus::kNotApplicable, "dropout is 0")}));
}

VerifyRun failing_run() {
  return make_run(make_verify_result({make_check("shapes", CheckStatus::kPass, "fine"),
                                      make_check("scale", CheckStatus::kFail, "the factor is 1")}),
                  {"dtype=float64"});
}

VerifyRun unchecked_run() {
  return make_run(make_verify_result({make_check("causality", CheckStatus::kNotApplicable, "not causal")}));
}

TEST(RunsText, IsShortAboutWhatPassedAndFullAboutWhatFailed) {
  EXPECT_EQ(text_of({passing_run(), failing_run(), make_broken_run("bad.json", "bad.json: /H: must divide")}),
            "small.json\n"
            "  pass   shapes, finite\n"
            "  n/a    dropout\n"
            "\n"
            "small.json dtype=float64\n"
            "  fail   scale   the factor is 1\n"
            "  pass   shapes\n"
            "\n"
            "bad.json\n"
            "  error  bad.json: /H: must divide\n"
            "\n"
            "summary of 3 runs\n"
            "\n"
            "  config      sweep          pass  fail  n/a  error  verdict\n"
            "  small.json                    2     0    1      0  passed\n"
            "  small.json  dtype=float64     1     1    0      0  failed\n"
            "  bad.json                                           the config is wrong\n"
            "\n"
            "a config is wrong: 1 of 3 runs passed, 1 failed, 0 incomplete, 1 not run\n");
}

TEST(RunsText, TellsEverythingWhenVerbose) {
  const std::string text = text_of({passing_run(), passing_run()}, {.verbose = true});
  EXPECT_TRUE(has(text, "  pass   shapes   fine\n")) << text;
  EXPECT_TRUE(has(text, "  n/a    dropout  dropout is 0\n")) << text;
}

TEST(RunsText, ExplainsEachFailureInItsPlace) {
  VerifyRun run = failing_run();
  std::get<VerifyResult>(run.outcome).explained_by = "scale 1";
  EXPECT_TRUE(has(text_of({run, passing_run()}), "  explained by: scale 1\n\nsmall.json\n"));
}

TEST(RunSummary, TheWorstDecides) {
  const VerifyRun no_file = make_broken_run("gone.json", "gone.json: cannot be read", 3);
  const VerifyRun wrong = make_broken_run("bad.json", "bad.json: /H: must divide", 2);
  EXPECT_EQ(summarize({passing_run()}).worst, RunVerdict::kPassed);
  EXPECT_EQ(summarize({unchecked_run(), passing_run()}).worst, RunVerdict::kNothingChecked);
  EXPECT_EQ(summarize({no_file, unchecked_run()}).worst, RunVerdict::kNotRun);
  EXPECT_EQ(summarize({no_file, failing_run(), passing_run()}).worst, RunVerdict::kFailed);
  EXPECT_EQ(summarize({failing_run(), wrong, no_file}).worst, RunVerdict::kBadConfig);
}

TEST(RunSummary, CountsEveryRunOnce) {
  const RunSummary summary =
      summarize({passing_run(), failing_run(), unchecked_run(), make_broken_run("a", "a: no"), passing_run()});
  EXPECT_EQ(summary.runs, 5);
  EXPECT_EQ(summary.passed, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.incomplete, 1);
  EXPECT_EQ(summary.not_run, 1);
}

}  // namespace
}  // namespace attn
