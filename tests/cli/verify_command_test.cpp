#include "cli/verify_command.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace attn
