// The table of planted faults.
#include <gtest/gtest.h>

#include <sstream>

#include "core/text.h"
#include "report/records.h"
#include "report/text_report.h"

namespace attn {
namespace {

using testing::make_fault;
using testing::make_self_test;
using testing::make_self_test_run;

std::string text_of(const SelfTestResult& result, const TextOptions& options = {}) {
  std::ostringstream out;
  write_text(out, make_self_test_run(result), options);
  return out.str();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

SelfTestResult small_result() {
  SelfTestResult result = make_self_test({make_fault("scale-none", "scale"), make_fault("head-drop", "")});
  result.faults[0].measured = 1.5;
  result.faults[0].detail = "the factor is 1";
  result.faults[1].not_applicable = "H is 1";
  return result;
}

TEST(SelfTestText, HasALineAFaultAndTheCounts) {
  const std::string text = text_of(small_result());
  EXPECT_TRUE(has(text,
                  "  fault       caught by  size  what it said\n"
                  "  scale-none  scale       1.5  the factor is 1\n"
                  "\n"
                  "passed: 1 fault planted, 1 caught, 0 survived, 1 n/a; 0 false alarms\n"))
      << text;
}

TEST(SelfTestText, GivesTheReasonOfWhatDoesNotApplyWhenVerbose) {
  EXPECT_FALSE(has(text_of(small_result()), "head-drop"));
  EXPECT_TRUE(has(text_of(small_result(), {.verbose = true}), "  head-drop   n/a              H is 1\n"))
      << text_of(small_result(), {.verbose = true});
}

TEST(SelfTestText, CutsLongSentencesToFit) {
  SelfTestResult result = small_result();
  result.faults[0].detail = std::string(300, 'x');
  std::istringstream lines(text_of(result));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 100u) << line;
}

TEST(SelfTestText, SurvivorsAndThoseMissedByACheckAreFailures) {
  SelfTestResult result = make_self_test({make_fault("quiet", ""), make_fault("half", "scale")});
  result.faults[1].missed_by = {"row-sums"};
  const std::string text = text_of(result);
  EXPECT_TRUE(has(text, "  quiet  SURVIVED\n")) << text;
  EXPECT_TRUE(has(text, "  fault quiet: no check caught it\n")) << text;
  EXPECT_TRUE(has(text, "  fault half: caught by scale, but missed by row-sums\n")) << text;
  EXPECT_TRUE(has(text, "\nfailed: 2 faults planted, 1 caught, 1 survived, 1 missed by a check that must catch it"))
      << text;
  EXPECT_TRUE(has(text_of(result, {.color = true}), "\x1b[31m  quiet  SURVIVED\x1b[0m\n"));
  EXPECT_EQ(verdict(result), RunVerdict::kFailed);
}

TEST(SelfTestText, AnAlarmOfTheHonestLayerIsAFailure) {
  SelfTestResult result = small_result();
  result.false_alarms = {testing::make_check("row-sums", CheckStatus::kFail, "a row sums to 2")};
  EXPECT_TRUE(has(text_of(result), "  the honest layer raised 1 alarm\n  fail   row-sums  a row sums to 2\n"));
  EXPECT_EQ(verdict(result), RunVerdict::kFailed);
}

TEST(SelfTestText, NothingPlantedIsNoPass) {
  SelfTestResult result = small_result();
  result.faults.erase(result.faults.begin());
  EXPECT_EQ(verdict(result), RunVerdict::kNothingChecked);
  EXPECT_TRUE(has(text_of(result), "nothing could be checked: 0 faults planted"));
}

}  // namespace
}  // namespace attn
