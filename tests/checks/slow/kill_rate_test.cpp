// No survivor: every planted fault that applies, on random configs and on the large ones that we ship.
#include <gtest/gtest.h>

#include <sstream>

#include "checks/fault_effects.h"
#include "checks/faults/faults.h"
#include "checks/self_test_support.h"
#include "checks/slow/random_config.h"

namespace attn {
namespace {

class KillRate : public ::testing::TestWithParam<int> {};

TEST_P(KillRate, IsAllOfThemOnARandomConfig) {
  const auto seed = static_cast<std::uint64_t>(3000000 + GetParam());
  const RandomConfig config = random_config(seed, {"float32", "float64", "bfloat16"}, 24);
  const SelfTestResult result = self_test(config.run);
  EXPECT_TRUE(result.passed()) << config.command() << " --self-test\n" << describe(result);
}

INSTANTIATE_TEST_SUITE_P(Configs, KillRate, ::testing::Range(0, 60));

class FaultsThatDoNotApply : public ::testing::TestWithParam<int> {};

TEST_P(FaultsThatDoNotApply, ChangeNoBitOfARandomConfig) {
  const auto seed = static_cast<std::uint64_t>(4000000 + GetParam());
  const RandomConfig config = random_config(seed, {"float32", "float64", "bfloat16"}, 16);
  EXPECT_GT(expect_no_effect_of_what_does_not_apply(config.run, config.command()), 5U);
}

INSTANTIATE_TEST_SUITE_P(Configs, FaultsThatDoNotApply, ::testing::Range(0, 60));

class KillRateOfShippedConfigs : public ::testing::TestWithParam<const char*> {};

TEST_P(KillRateOfShippedConfigs, IsAllOfThem) {
  std::istringstream no_input;
  const SelfTestResult result =
      self_test(load_config("configs/" + std::string(GetParam()) + ".json", no_input, {"threads=1"}));
  EXPECT_TRUE(result.passed()) << describe(result);
}

INSTANTIATE_TEST_SUITE_P(Configs, KillRateOfShippedConfigs,
                         ::testing::Values("causal_multi_head", "causal_self_attention", "text", "minilm_layer0",
                                           "bert_padded", "cross_attention", "gemma2_softcap", "llama_cache",
                                           "mistral_window", "smollm2_layer18"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace attn
