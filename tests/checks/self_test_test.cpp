// verify --self-test: every planted fault is caught, and an honest layer raises no alarm.
#include <gtest/gtest.h>

#include <sstream>

#include "checks/check_test_support.h"
#include "checks/faults/faults.h"
#include "checks/self_test_support.h"
#include "config/config_file.h"

namespace attn {
namespace {

SelfTestResult self_test_of(const std::string& path, const std::vector<std::string>& set_words = {}) {
  std::istringstream no_input;
  std::vector<std::string> words{"threads=1"};
  words.insert(words.end(), set_words.begin(), set_words.end());
  return self_test(load_config(path, no_input, words));
}

TEST(SelfTest, CatchesEveryFaultOfTheSmallestConfigInEveryPrecision) {
  for (const char* dtype : {"float32", "float64", "bfloat16", "float16"}) {
    const SelfTestResult result = self_test_of("configs/tiny.json", {std::string("dtype=") + dtype});
    EXPECT_TRUE(result.passed()) << dtype << "\n" << describe(result);
    EXPECT_EQ(result.faults.size(), fault_list().size());
    RecordProperty(std::string("seconds_") + dtype, std::to_string(result.seconds));
  }
}

TEST(SelfTest, CatchesEveryFaultOfOneHeadWithoutAnAxis) {
  const SelfTestResult result = self_test_of("configs/single_head.json");
  EXPECT_TRUE(result.passed()) << describe(result);
}

TEST(SelfTest, CatchesEveryFaultWithoutAMask) {
  const SelfTestResult result = self_test_of("configs/encoder.json");
  EXPECT_TRUE(result.passed()) << describe(result);
}

TEST(SelfTest, CatchesEveryFaultThatOneTokenCanShow) {
  const SelfTestResult result = self_test_of("configs/tiny.json", {"T=1", "B=1", "dropout=0.25", "bias=true"});
  EXPECT_TRUE(result.passed()) << describe(result);
}

TEST(SelfTest, CatchesEveryFaultOfWhatModelsHave) {
  const std::vector<std::vector<std::string>> configs{
      // As in Mistral, Qwen3, gpt-oss, BLOOM; with the engine sdpa; several documents. More in slow/kill_rate_test.cpp.
      {"H=4", "H_kv=2", "d_k=4", R"(rope={"style":"half","theta":500})", "window=4", "padding=left", "lengths=[8,5]"},
      {"H=2", "d_k=4", R"(rope={"style":"adjacent","theta":1000})", "qk_norm=true", "qkv=separate", "scale=0.3"},
      {"H=4", "H_kv=1", "d_k=4", "sink=true", "window=3", "softcap=5"},
      {"H=3", "d_k=4", "d_model=12", "alibi=true", "padding=right", "lengths=[3,8]"},
      {"H=4", "H_kv=2", "d_k=4", "engine=sdpa", R"(rope={"style":"half"})", "window=3"},
      {"H=2", "d_k=4", R"(mask={"kind":"document","lengths":[3,4]})"},
  };
  for (const std::vector<std::string>& words : configs) {
    const SelfTestResult result = self_test_of("configs/tiny.json", words);
    EXPECT_TRUE(result.passed()) << ::testing::PrintToString(words) << "\n" << describe(result);
  }
}

TEST(SelfTest, SaysOfEachFaultWhatCaughtItAndHowLargeItWas) {
  const SelfTestResult result = self_test_of("configs/tiny.json");
  const FaultVerdict& scale = fault_of(result, "scale-none");
  EXPECT_EQ(scale.caught_by, "scale");
  EXPECT_NEAR(scale.measured.value(), 1.0, 1e-4);  // twice 1/sqrt(d_k)
  EXPECT_NE(scale.detail.find("no scale at all"), std::string::npos) << scale.detail;
  EXPECT_EQ(scale.not_applicable, "");
  const FaultVerdict& long_mask = fault_of(result, "mask-right-up-to-8");
  EXPECT_EQ(long_mask.not_applicable, "T is 8: the mask is right up to 8");
  EXPECT_EQ(long_mask.caught_by, "");
  EXPECT_GT(result.threads, 0);
  EXPECT_NE(result.torch_version, "");
}

TEST(SelfTest, TellsItsProgress) {
  std::vector<std::string> told;
  RunConfig run = small_run();
  self_test(run, [&](const std::string& name, std::size_t index, std::size_t total) {
    EXPECT_EQ(index, told.size());
    EXPECT_EQ(total, fault_list().size());
    told.push_back(name);
  });
  ASSERT_EQ(told.size(), fault_list().size());
  for (std::size_t index = 0; index < told.size(); ++index) EXPECT_EQ(told[index], fault_list()[index].name);
}

/// One planted fault that was caught, one that does not apply, no alarm.
SelfTestResult good_result() {
  SelfTestResult result;
  result.faults.resize(2);
  result.faults[0].name = "mask-none";
  result.faults[0].caught_by = "causality";
  result.faults[1].name = "scale-none";
  result.faults[1].not_applicable = "d_k is 1";
  return result;
}

TEST(SelfTest, PassesOnlyWhenEveryPlantedFaultWasCaught) {
  EXPECT_TRUE(good_result().passed());
  SelfTestResult survivor = good_result();
  survivor.faults[0].caught_by.clear();
  EXPECT_FALSE(survivor.passed());
  SelfTestResult missed = good_result();
  missed.faults[0].missed_by = {"masked-weights"};
  EXPECT_FALSE(missed.passed());
  SelfTestResult nothing_planted = good_result();
  nothing_planted.faults.erase(nothing_planted.faults.begin());
  EXPECT_FALSE(nothing_planted.passed());
  SelfTestResult alarm = good_result();
  alarm.false_alarms.emplace_back();
  EXPECT_FALSE(alarm.passed());
}

}  // namespace
}  // namespace attn
