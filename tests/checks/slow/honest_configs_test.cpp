// No false alarm: honest layers of random configs against all checks.
#include <gtest/gtest.h>

#include "checks/check_test_support.h"
#include "checks/slow/random_config.h"

namespace attn {
namespace {

constexpr int kBlock = 50;  // configs of one test, so that the tests can be shared out

void expect_no_alarm(const RandomConfig& config) {
  const VerifyResult result = verify_attention(config.run);
  for (const CheckResult& check : result.checks) {
    const bool alarm = check.status == CheckStatus::kFail || check.status == CheckStatus::kError;
    EXPECT_FALSE(alarm) << config.command() << " --check " << check.name << "\n" << describe({check});
  }
}

class HonestConfigs : public ::testing::TestWithParam<int> {};

TEST_P(HonestConfigs, RaiseNoAlarm) {
  for (int number = GetParam() * kBlock; number < (GetParam() + 1) * kBlock; ++number) {
    const auto seed = static_cast<std::uint64_t>(number);
    expect_no_alarm(random_config(seed, {"float32", "float64", "bfloat16"}, 24));
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, HonestConfigs, ::testing::Range(0, 1000 / kBlock));

class HonestConfigsInBfloat16 : public ::testing::TestWithParam<int> {};

TEST_P(HonestConfigsInBfloat16, RaiseNoAlarm) {
  for (int number = GetParam() * kBlock; number < (GetParam() + 1) * kBlock; ++number) {
    expect_no_alarm(random_config(static_cast<std::uint64_t>(1000000 + number), {"bfloat16"}, 24));
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, HonestConfigsInBfloat16, ::testing::Range(0, 200 / kBlock));

}  // namespace
}  // namespace attn
