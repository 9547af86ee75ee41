#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "core/text.h"
#include "report/records.h"
#include "report/table.h"
#include "report/text_report.h"
#include "report/verdict.h"

namespace attn {
namespace {

using testing::make_check;
using testing::make_verify_result;

std::string text_of(const VerifyResult& result, const TextOptions& options = {}) {
  std::ostringstream out;
  write_text(out, testing::make_run(result), options);
  return out.str();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

CheckResult failed_causality() {
  CheckResult check = make_check("causality", CheckStatus::kFail, "an output moved although only its future changed");
  check.measured = 0.125;
  check.limit = 0.0;
  check.limit_reason = "the same numbers in the same order give the same bits";
  check.unit = "largest difference";
  check.compared = 12800;
  check.wrong = 3;
  check.where_first = "(batch 0, query 2)";
  check.where_worst = "(batch 1, query 4)";
  return check;
}

TEST(VerifyText, HasOneAlignedLineACheckAndAVerdict) {
  const std::string text =
      text_of(make_verify_result({make_check("row-sums", CheckStatus::kPass, "all rows sum to 1"),
                                  make_check("dropout", CheckStatus::kNotApplicable, "dropout is 0"),
                                  make_check("shapes", CheckStatus::kError, "out of chalk")}));
  EXPECT_TRUE(has(text,
                  "\n"
                  "  pass   row-sums  all rows sum to 1\n"
                  "  n/a    dropout   dropout is 0\n"
                  "  error  shapes    out of chalk\n"
                  "\n"
                  "a check could not be carried out: 1 pass, 0 fail, 1 n/a, 1 error\n"))
      << text;
}

TEST(VerifyText, TellsBelowAFailureHowMuchAndWhere) {
  const std::string text = text_of(make_verify_result({failed_causality()}));
  EXPECT_TRUE(has(text,
                  "  fail   causality  an output moved although only its future changed\n"
                  "         measured 0.125 (largest difference), limit 0\n"
                  "         limit is the same numbers in the same order give the same bits\n"
                  "         outside 3 of 12,800 compared\n"
                  "         first at (batch 0, query 2)\n"
                  "         worst at (batch 1, query 4)\n"))
      << text;
  EXPECT_TRUE(has(text, "failed: 0 pass, 1 fail, 0 n/a, 0 error\n"));
}

TEST(VerifyText, HasTheNumbersOfAPassInItsLineAndTheRestWhenVerbose) {
  CheckResult check = make_check("sdpa-forward", CheckStatus::kPass, "backends: math, flash");
  check.measured = 3.1e-7;
  check.limit = 1e-6;
  check.limit_reason = "the lesson's figure";
  check.unit = "largest difference";
  check.compared = 1600;
  const std::string line = "  pass   sdpa-forward  largest difference: 3.1e-07, limit 1e-06, 1,600 compared\n";
  EXPECT_TRUE(has(text_of(make_verify_result({check})), line + "\npassed"));
  EXPECT_TRUE(has(text_of(make_verify_result({check}), {.verbose = true}), line +
                                                                               "         backends: math, flash\n"
                                                                               "         limit is the lesson's figure\n"
                                                                               "         took 0 s\n"));
}

TEST(VerifyText, NamesANanThatWasMeasured) {
  CheckResult check = failed_causality();
  check.measured = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(has(text_of(make_verify_result({check})), "measured nan"));
}

TEST(VerifyText, WrapsLongSentencesBehindTheName) {
  std::string sentence;
  for (int word = 0; word < 40; ++word) sentence += "tolerable ";
  const std::string text = text_of(make_verify_result({make_check("x", CheckStatus::kNotApplicable, sentence)}));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), kTextWidth) << line;
  EXPECT_TRUE(has(text, "\n            tolerable"));
}

TEST(VerifyText, ColorsTheStatusOnly) {
  const VerifyResult result = make_verify_result({make_check("shapes", CheckStatus::kPass, "fine")});
  EXPECT_FALSE(has(text_of(result), "\x1b"));
  EXPECT_TRUE(has(text_of(result, {.color = true}), "\x1b[32mpass \x1b[0m  shapes"));
}

TEST(VerifyText, NamesTheMistakeThatExplainsAFailure) {
  VerifyResult result = make_verify_result({failed_causality()});
  EXPECT_FALSE(has(text_of(result), "explained by"));
  result.explained_by = "mask shifted by +1";
  EXPECT_TRUE(has(text_of(result), "0 error\nexplained by: mask shifted by +1\n"));
}

TEST(VerifyText, SaysThatAPlantedFaultWasJudgedAndWhetherItWasCaught) {
  VerifyResult result = make_verify_result({failed_causality()});
  result.fault = "mask-shift";
  EXPECT_TRUE(has(text_of(result), "  fault    mask-shift, planted on purpose into this layer\n"));
  EXPECT_TRUE(has(text_of(result), "planted fault mask-shift: caught by causality\n"));
  result.checks[0].status = CheckStatus::kPass;
  EXPECT_TRUE(has(text_of(result), "planted fault mask-shift: noticed by no check\n"));
}

TEST(VerifyText, NamesTheSweep) {
  std::ostringstream out;
  write_text(out, testing::make_run(make_verify_result({}), {"T=3", "dtype=float64"}), {});
  EXPECT_TRUE(has(out.str(), "  sweep    T=3, dtype=float64\n")) << out.str();
}

TEST(Verdict, FailureOutranksErrorAndErrorOutranksPass) {
  const CheckResult pass = make_check("a", CheckStatus::kPass);
  const CheckResult fail = make_check("b", CheckStatus::kFail);
  const CheckResult none = make_check("c", CheckStatus::kNotApplicable);
  const CheckResult error = make_check("d", CheckStatus::kError);
  EXPECT_EQ(verdict(make_verify_result({pass, none})), Verdict::kPassed);
  EXPECT_EQ(verdict(make_verify_result({pass, error})), Verdict::kError);
  EXPECT_EQ(verdict(make_verify_result({pass, error, fail})), Verdict::kFailed);
}

TEST(Verdict, NothingCheckedIsNoPass) {
  EXPECT_EQ(verdict(make_verify_result({})), Verdict::kNothingChecked);
  EXPECT_EQ(verdict(make_verify_result({make_check("c", CheckStatus::kNotApplicable)})), Verdict::kNothingChecked);
}

}  // namespace
}  // namespace attn
