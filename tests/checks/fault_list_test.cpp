// The list of planted faults: what it promises, to which config each fault applies, and that every check is needed.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "checks/check_test_support.h"
#include "checks/planted_faults.h"
#include "config/config_file.h"
#include "core/error.h"

namespace attn {
namespace {

RunConfig run_of(const std::vector<std::string>& set_words) {
  std::istringstream no_input;
  std::vector<std::string> words{"B=2", "T=7", "d_model=12", "H=3", "max_seq_len=16", "threads=1", "seed=5"};
  words.insert(words.end(), set_words.begin(), set_words.end());
  return load_config(std::nullopt, no_input, words);
}

std::string why_not(const std::string& fault, const std::vector<std::string>& set_words) {
  return why_not_applicable(fault, run_of(set_words)).value_or("it applies");
}

TEST(FaultList, HasDistinctNamesInKebabCaseAndOneLineEach) {
  std::set<std::string> names, words;
  for (const FaultInfo& fault : fault_list()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_TRUE(words.insert(fault.what).second) << fault.what;
    EXPECT_EQ(fault.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << fault.name;
    EXPECT_EQ(fault.what.find('\n'), std::string::npos) << fault.name;
    EXPECT_FALSE(fault.what.ends_with(".")) << fault.name;
  }
  EXPECT_GE(names.size(), 45U);
}

TEST(FaultList, NamesCatchersThatExist) {
  std::set<std::string> checks;
  for (const CheckInfo& check : check_list()) checks.insert(check.name);
  for (const FaultInfo& fault : fault_list()) {
    EXPECT_FALSE(fault.caught_by.empty()) << fault.name;
    for (const std::string& name : fault.caught_by) EXPECT_TRUE(checks.contains(name)) << fault.name << ": " << name;
  }
}

TEST(FaultList, NeedsEveryCheckToCatchAtLeastOneFault) {
  std::set<std::string> catchers;
  for (const FaultInfo& fault : fault_list()) catchers.insert(fault.caught_by.begin(), fault.caught_by.end());
  for (const CheckInfo& check : check_list()) EXPECT_TRUE(catchers.contains(check.name)) << check.name;
}

TEST(FaultList, KnowsTheNearestNameToAnUnknownOne) {
  try {
    why_not_applicable("mask-nome", small_run());
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "unknown fault \"mask-nome\"; did you mean \"mask-none\"?");
  }
  EXPECT_THROW(verify_fault(small_run(), "mask-nome"), ConfigError);
}

TEST(FaultList, TellsWhyAFaultDoesNotApply) {
  const struct {
    const char* fault;
    std::vector<std::string> config;
    const char* reason;
  } cases[] = {
      {"scale-none", {"T=1"}, "T is 1: one key has weight 1, whatever its score"},
      {"scale-none", {"d_k=1"}, "d_k is 1: its root is 1 as well"},
      {"scale-d-k", {"d_k=1"}, "d_k is 1: its root is 1 as well"},
      {"scale-sqrt-d-model", {"d_k=12"}, "d_k is d_model (12)"},
      {"scale-sqrt-heads", {"d_k=3"}, "d_k is H (3)"},
      {"mask-none", {"causal=false"}, "the layer is not causal"},
      {"mask-none", {"T=1"}, "T is 1: there is no future"},
      {"mask-hides-oneself", {"causal=false"}, "the layer is not causal"},
      {"mask-hides-oneself", {"T=1"}, "it applies"},
      {"mask-always-on", {"causal=false"}, "it applies"},
      {"mask-block-forgotten", {"T=2"}, "T is 2: the lower right block of the mask hides nothing"},
      {"mask-block-forgotten", {"T=3"}, "it applies"},
      {"mask-right-up-to-8", {"T=8"}, "T is 8: the mask is right up to 8"},
      {"mask-right-up-to-8", {"T=9"}, "it applies"},
      {"mask-fill-minus-50", {"dtype=float16"}, "exp(-50) is exactly 0 in float16"},
      {"mask-fill-minus-50", {"dtype=bfloat16"}, "it applies"},
      {"noise-1e-6", {"dtype=bfloat16"}, "a millionth vanishes beside numbers of bfloat16"},
      {"future-mixed-in-1e-6", {"dtype=float16"}, "a millionth vanishes beside numbers of float16"},
      {"weights-rounded-to-bfloat16", {"dtype=bfloat16"}, "dtype is bfloat16 already"},
      {"weights-rounded-to-bfloat16", {"dtype=float16"}, "it applies"},
      {"heads-reversed", {"H=1"}, "H is 1"},
      {"heads-cut-off-by-one", {"H=1"}, "it applies"},
      {"heads-cut-off-by-one", {"H=1", "d_k=1"}, "H*d_k is 1"},
      {"heads-cut-off-by-one", {"H=1", "module=single-head"}, "the layer has no head axis"},
      {"leak-in-gradient-alone", {"causal=false"}, "it applies"},
      {"future-mixed-in-1e-6", {"causal=false"}, "it applies"},
      {"heads-bare-reshape", {"T=1"}, "T is 1: no two tokens can be confused"},
      {"softmax-over-heads", {"H=1"}, "it applies"},
      {"softmax-over-heads", {"H=1", "T=1"}, "H and T are 1: the only weight is 1 anyway"},
      {"softmax-over-heads", {"H=1", "module=single-head"}, "the layer has no head axis"},
      {"fused-thirds-per-head", {"qkv=separate"}, "qkv is separate"},
      {"fused-thirds-per-head", {"H=1"}, "H is 1"},
      {"per-head-as-thirds", {}, "qkv is fused"},
      {"per-head-as-thirds", {"qkv=fused-per-head"}, "it applies"},
      {"bias-forgotten", {}, "the layer has no bias"},
      {"output-projection-forgotten", {"d_k=5"}, "H*d_k (15) is not d_model (12): the shapes would not fit"},
      {"output-weight-transposed", {"d_model=1", "H=1"}, "d_model is 1: a weight of one number is its own transpose"},
      {"dropout-not-scaled", {}, "dropout is 0"},
      {"keys-of-neighbour-item", {"B=1"}, "it applies"},
      {"rebuilt-differently", {}, "it applies"},
  };
  for (const auto& [fault, config, reason] : cases) EXPECT_EQ(why_not(fault, config), reason) << fault;
}

TEST(FaultList, RefusesToPlantWhatChangesNothing) {
  RunConfig run = small_run();
  run.attention.causal = false;
  try {
    verify_fault(run, "mask-none");
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "--set: fault mask-none changes nothing here: the layer is not causal");
  }
}

TEST(FaultList, SaysWhichFaultWasJudged) {
  const VerifyResult result = verify_fault(small_run(), "mask-none");
  EXPECT_EQ(result.fault, "mask-none");
  EXPECT_EQ(find(result.checks, "masked-weights").status, CheckStatus::kFail);
  EXPECT_EQ(result.checks.size(), check_list().size());
  EXPECT_EQ(result.config, small_run());
}

TEST(FaultList, PassesTheOptionsOn) {
  VerifyOptions options;
  options.only = {"row-sums"};
  const VerifyResult result = verify_fault(small_run(), "mask-none", options);
  ASSERT_EQ(result.checks.size(), 1U);
  EXPECT_EQ(result.checks.front().status, CheckStatus::kPass);
}

/// Everything that a user can see of a layer: output in eval and in training, gradients of x and parameters.
std::vector<at::Tensor> everything_of(const RunConfig& run, const LayerFactory& factory) {
  const std::shared_ptr<MultiHeadAttentionImpl> layer = factory(run);
  const at::Tensor x = input_of(run).requires_grad_(true);
  const at::Tensor output = layer->forward(x).output;
  output.sum().backward();
  std::vector<at::Tensor> seen{output.detach(), x.grad()};
  for (const at::Tensor& parameter : layer->parameters()) seen.push_back(parameter.grad());
  layer->train();
  torch::manual_seed(3);
  const at::NoGradGuard no_gradients;
  seen.push_back(layer->forward(x).output);
  return seen;
}

TEST(FaultList, ClaimsNothingToBeWithoutEffectThatAUserWouldSee) {
  const std::vector<std::vector<std::string>> configs{{},
                                                      {"T=1"},
                                                      {"T=2"},
                                                      {"H=1", "d_k=4"},
                                                      {"d_k=1"},
                                                      {"causal=false"},
                                                      {"dtype=float16"},
                                                      {"d_k=12"},
                                                      {"d_k=3"},
                                                      {"module=single-head", "H=1", "qkv=separate"}};
  // Their reason is that such a layer cannot be, or that rounding hides nearly all of it.
  const std::set<std::string> other_reason{"output-projection-forgotten",
                                           "output-weight-transposed",
                                           "fused-thirds-per-head",
                                           "per-head-as-thirds",
                                           "noise-1e-6",
                                           "future-mixed-in-1e-6",
                                           "first-token-rounded"};
  std::size_t tried = 0;
  for (const std::vector<std::string>& words : configs) {
    const RunConfig run = run_of(words);
    const std::vector<at::Tensor> honest =
        everything_of(run, [](const RunConfig& config) { return make_layer(config); });
    for (const FaultInfo& fault : fault_list()) {
      if (!why_not_applicable(fault.name, run).has_value() || other_reason.contains(fault.name)) continue;
      const std::string reason = why_not_applicable(fault.name, run).value();
      if (reason == "the layer has no head axis") continue;  // such a layer cannot be built with a fault of heads
      if (run.attention.module == ModuleKind::kSingleHead && reason == "H is 1") continue;
      const std::vector<at::Tensor> faulty = everything_of(run, planted(fault.name));
      ASSERT_EQ(faulty.size(), honest.size());
      for (std::size_t index = 0; index < honest.size(); ++index) {
        EXPECT_TRUE(at::equal(faulty[index], honest[index]))
            << fault.name << ", tensor " << index << " with " << ::testing::PrintToString(words);
      }
      ++tried;
    }
  }
  EXPECT_GT(tried, 80U);
}

}  // namespace
}  // namespace attn
