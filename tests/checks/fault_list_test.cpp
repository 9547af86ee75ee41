// The list of planted faults: what it promises, to which config each fault applies, and that every check is needed.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "checks/check_test_support.h"
#include "checks/fault_effects.h"
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
  EXPECT_GE(names.size(), 110U);
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
      {"scale-none", {"window=1"}, "every query sees one key at most: one key has weight 1, whatever its score"},
      {"scale-none", {"window=1", "sink=true"}, "it applies"},
      {"scale-none", {"d_k=1"}, "1 is the right scale here (1)"},
      {"scale-d-k", {"d_k=1"}, "1/d_k is the right scale here (1)"},
      {"scale-sqrt-d-model", {"d_k=12"}, "1/sqrt(d_model) is the right scale here (0.2887)"},
      {"scale-sqrt-heads", {"d_k=3"}, "1/sqrt(H) is the right scale here (0.5774)"},
      {"scale-none", {"scale=1"}, "1 is the right scale here (1)"},
      {"scale-twice", {"scale=1"}, "1 is the right scale here (1)"},
      {"scale-given-ignored", {}, "no scale is given"},
      {"scale-given-ignored", {"scale=1"}, "it applies"},
      {"mask-none", {"causal=false"}, "no pair of query and key is masked otherwise"},
      {"mask-none", {"causal=false", "window=3"}, "it applies"},
      {"mask-none", {"T=1"}, "no pair of query and key is masked otherwise"},
      {"mask-leaks-one-key", {"causal=false"}, "the layer is not causal"},
      {"mask-leaks-one-key", {"T=1"}, "T is 1: there is no future"},
      {"mask-leaks-one-key", {R"(mask={"kind":"dilated","stride":2})"}, "no pair of query and key is masked otherwise"},
      {"mask-hides-oneself", {"causal=false"}, "the layer is not causal"},
      {"mask-hides-oneself", {"T=1"}, "it applies"},
      {"mask-always-on", {"causal=false"}, "it applies"},
      {"mask-always-on", {"padding=right", "lengths=[1,1]"}, "padding leaves the first token alone"},
      {"mask-block-forgotten", {"T=2"}, "no pair of query and key is masked otherwise"},
      {"mask-block-forgotten", {"T=3"}, "it applies"},
      {"mask-right-up-to-8", {"T=8"}, "T is 8: the mask is right up to 8"},
      {"mask-right-up-to-8", {"T=9"}, "it applies"},
      {"mask-fill-minus-50", {"dtype=float16"}, "exp(-50) is exactly 0 in float16"},
      {"mask-fill-minus-50", {"dtype=bfloat16"}, "it applies"},
      {"mask-fill-minus-50", {"causal=false"}, "no query sees some keys and not others"},
      {"mask-none", {"engine=sdpa"}, "it applies"},
      {"leak-random", {"engine=sdpa"}, "engine is sdpa: the fault is one of the explicit engine"},
      {"leak-random", {"causal=false"}, "no key is hidden from any query"},
      {"leak-random", {"causal=false", "padding=left", "lengths=[7,6]"}, "it applies"},
      {"window-one-more", {}, "there is no window"},
      {"window-one-more", {"window=6"}, "it applies"},
      {"window-one-more", {"window=7"}, "no pair of query and key is masked otherwise"},
      {"window-one-less", {"window=7"}, "it applies"},
      {"window-one-less", {"window=8"}, "no pair of query and key is masked otherwise"},
      {"window-not-causal", {"window=1"}, "no pair of query and key is masked otherwise"},
      {"own-mask-inverted", {}, "the config has no mask of its own"},
      {"own-mask-replaces-causal",
       {R"(mask={"kind":"document","lengths":[1,1,1,1,1,1]})"},
       "no pair of query and key is masked otherwise"},
      {"own-mask-replaces-causal", {R"(mask={"kind":"document","lengths":[3]})"}, "it applies"},
      {"own-mask-transposed",
       {R"(mask={"kind":"document","lengths":[3]})"},
       "no pair of query and key is masked otherwise"},
      {"own-mask-transposed", {"causal=false", R"(mask={"kind":"prefix","length":2})"}, "it applies"},
      {"padding-forgotten", {}, "there is no padding"},
      {"padding-forgotten", {"padding=left", "lengths=[7,7]"}, "no pair of query and key is masked otherwise"},
      {"padding-forgotten", {"padding=left", "lengths=[7,6]"}, "it applies"},
      {"padding-of-neighbour", {"padding=left", "lengths=[5,5]"}, "every item has the padding of the one before"},
      {"padding-other-side", {"padding=left", "lengths=[7,7]"}, "both sides hide the same"},
      {"empty-rows-nan", {"padding=right", "lengths=[1,1]"}, "every query sees a key"},
      {"empty-rows-nan", {"padding=left", "lengths=[6,7]"}, "it applies"},
      {"noise-1e-6", {"dtype=bfloat16"}, "a millionth vanishes beside numbers of bfloat16"},
      {"future-mixed-in-1e-6", {"dtype=float16"}, "a millionth vanishes beside numbers of float16"},
      {"weights-rounded-to-bfloat16", {"dtype=bfloat16"}, "dtype is bfloat16 already"},
      {"weights-rounded-to-bfloat16", {"dtype=float16"}, "it applies"},
      {"softmax-over-queries", {"window=1"}, "every query sees one key, and every key is seen by one query"},
      {"heads-reversed", {"H=1"}, "H is 1"},
      {"heads-reversed", {"H_kv=1"}, "it applies"},
      {"heads-reversed", {"H_kv=1", "window=1"}, "H_kv is 1, and no score says anything: all heads are alike"},
      {"heads-cut-off-by-one", {"H=1"}, "it applies"},
      {"heads-cut-off-by-one", {"H=1", "d_k=1"}, "H*d_k is 1"},
      {"heads-cut-off-by-one", {"H_kv=1", "d_k=1"}, "it applies"},
      {"heads-cut-off-by-one", {"H_kv=1", "d_k=1", "T=1"}, "H_kv*d_k is 1, and no score says anything"},
      {"gradient-zero", {"softcap=0.01", "scale=0.1"}, "it applies"},
      {"gradient-zero",
       {"softcap=0.01", "scale=100"},
       "softcap 0.01 flattens all scores: no gradient comes back through them"},
      {"heads-cut-off-by-one", {"H=1", "module=single-head"}, "the layer has no head axis"},
      {"leak-in-gradient-alone", {"causal=false"}, "it applies"},
      {"future-mixed-in-1e-6", {"causal=false"}, "it applies"},
      {"heads-bare-reshape", {"T=1"}, "T is 1: no two tokens can be confused"},
      {"softmax-over-heads", {"H=1"}, "it applies"},
      {"softmax-over-heads", {"H=1", "T=1"}, "H is 1 and every query sees one key at most: its weight is 1 anyway"},
      {"softmax-over-heads", {"H=1", "module=single-head"}, "the layer has no head axis"},
      {"fused-thirds-per-head", {"qkv=separate"}, "qkv is separate"},
      {"fused-thirds-per-head", {"H=1"}, "H is 1"},
      {"fused-thirds-per-head", {"H_kv=1"}, "H_kv is 1: there is one key head"},
      {"per-head-as-thirds", {}, "qkv is fused"},
      {"per-head-as-thirds", {"qkv=fused-per-head"}, "it applies"},
      {"qk-swapped", {"H_kv=1"}, "H_kv is not H: the shapes would not fit"},
      {"groups-tiled", {}, "H_kv is H: every head has keys of its own"},
      {"groups-tiled", {"H_kv=1"}, "H_kv is 1: there is one key head"},
      {"groups-tiled", {"H=4", "H_kv=2"}, "it applies"},
      {"rope-on-values", {}, "there is no rope"},
      {"rope-on-values", {R"(rope={"style":"half"})"}, "it applies"},
      {"rope-on-values",
       {R"(rope={"style":"half"})", "T=1"},
       "no query sees a key after position 0, where nothing is turned"},
      {"rope-other-pairing",
       {R"(rope={"style":"half"})", "d_k=2"},
       "d_k is 2: its one pair is the same in both styles"},
      {"rope-theta-10000", {R"(rope={"style":"half"})"}, "theta is 10000"},
      {"rope-theta-10000", {R"(rope={"style":"half","theta":500})", "d_k=2"}, "every pair turns as with theta 10000"},
      {"rope-scaling-forgotten", {R"(rope={"style":"half"})"}, "the frequencies are not scaled"},
      {"rope-before-norm",
       {R"(rope={"style":"half"})", "qk_norm=true"},
       "the norm's weights are 1: turning changes no norm"},
      {"rope-forgotten", {R"(rope={"style":"half"})", "window=1", "sink=true"}, "every query sees itself at most"},
      {"cache-top-left", {"causal=false"}, "the layer is not causal: it cannot run in pieces"},
      {"cache-top-left", {"T=1"}, "T is 1: it cannot be made in pieces"},
      {"cache-top-left", {"window=1"}, "queries see the same from the first place as from the last"},
      {"cache-stale-after-reset", {"window=1"}, "a window of 1 keeps no key"},
      {"cache-drops-one-too-many", {"window=7"}, "it applies"},
      {"cache-drops-one-too-many", {"window=8"}, "no query sees the oldest key of its window"},
      {"cache-forgets-window", {"window=7"}, "the window hides nothing"},
      {"softcap-forgotten", {}, "there is no softcap"},
      {"softcap-after-mask", {"softcap=100"}, "exp(-100) vanishes in float32"},
      {"softcap-before-scale", {"softcap=5", "scale=1"}, "the scale is 1"},
      {"alibi-forgotten", {"alibi=true", "window=1"}, "every query has its keys at one distance"},
      {"sink-scaled", {"sink=true", "scale=1"}, "the scale is 1"},
      {"bias-forgotten", {}, "the layer has no bias"},
      {"bias-forgotten", {"output_bias=true"}, "it applies"},
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
    verify_fault(run, "mask-leaks-one-key");
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "--set: fault mask-leaks-one-key changes nothing here: the layer is not causal");
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

TEST(FaultList, ClaimsNothingToBeWithoutEffectThatAUserWouldSee) {
  const std::vector<std::vector<std::string>> configs{
      {},
      {"T=1"},
      {"T=2"},
      {"H=1", "d_k=4"},
      {"d_k=1"},
      {"causal=false"},
      {"dtype=float16"},
      {"d_k=12"},
      {"d_k=3"},
      {"module=single-head", "H=1", "qkv=separate"},
      {"window=1", "qkv=separate", "H_kv=1"},
      {"window=1", "sink=true", R"(rope={"style":"half"})"},
      {"window=7", R"(rope={"style":"adjacent","theta":500000})", "H_kv=1"},
      {"causal=false", "padding=right", "lengths=[1,1]", "H_kv=1"},
      {"padding=left", "lengths=[1,7]", "alibi=true", "softcap=5"},
      {"causal=false", R"(mask={"kind":"document","lengths":[1,1,1,1,1,1,1]})", "qk_norm=true"},
      {R"(mask={"kind":"dilated","stride":7})", "scale=1"},
      {"qkv=separate", R"(memory={"T_k":1})", "causal=false"},
      {"qkv=separate", R"(memory={"T_k":5})", "causal=false", "T=1"},
      {"engine=sdpa", "padding=right", "lengths=[7,7]"}};
  std::size_t tried = 0;
  for (const std::vector<std::string>& words : configs) {
    tried += expect_no_effect_of_what_does_not_apply(run_of(words), ::testing::PrintToString(words));
  }
  EXPECT_GT(tried, 600U);
}

}  // namespace
}  // namespace attn
