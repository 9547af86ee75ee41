#include "checks/reference/error_budget.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "checks/check_test_support.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "checks/reference/plain_rounding.h"
#include "core/error.h"

namespace attn {
namespace {

CoreInput random_core(std::int64_t B, std::int64_t H, std::int64_t H_kv, std::int64_t T, std::int64_t d_k, bool causal,
                      at::ScalarType type) {
  const auto draw = [&](std::int64_t heads, std::uint64_t seed) {
    return random_normal({B, heads, T, d_k}, seed, RandomStream::kChecks).to(type);
  };
  AttentionConfig config;
  config.H = H;
  config.given_d_k = d_k;
  CoreInput input{draw(H, 1), draw(H_kv, 2), draw(H_kv, 3), draw(H, 4), score_rules(config), {}, {}};
  if (causal) input.mask = declared_mask(config, T, T, {}, at::kCPU);
  return input;
}

TEST(ErrorBudget, IsTwiceThePlainErrorPlusOneRounding) {
  const at::Tensor reference = at::tensor({1.0, -4.0}, at::kDouble);
  const at::Tensor plain = at::tensor({1.0, -4.0 - std::ldexp(1.0, -20)}, at::kFloat);
  const ErrorBudget budget = budget_from(reference, plain, 100);
  EXPECT_DOUBLE_EQ(budget.max_abs, 2 * std::ldexp(1.0, -20) + 4 * std::ldexp(1.0, -23));
  EXPECT_NE(budget.why.find("twice the plain formula's error in float32"), std::string::npos);
}

TEST(ErrorBudget, IsNotZeroWhereThePlainFormulaMakesNoError) {
  const at::Tensor one = at::ones({3}, at::kDouble);
  EXPECT_EQ(budget_from(one, one.to(at::kFloat), 1).max_abs, epsilon_of(at::kFloat));
}

TEST(ErrorBudget, IsCapped) {
  const at::Tensor reference = at::ones({3}, at::kDouble);
  const ErrorBudget budget = budget_from(reference, at::zeros({3}, at::kFloat), 4);
  EXPECT_DOUBLE_EQ(budget.max_abs, 128 * epsilon_of(at::kFloat));
}

TEST(ErrorBudget, ARoundingGrowsWithTheLargestScore) {
  const RoundingSize size{2.0, 9.0};
  EXPECT_DOUBLE_EQ(budget_of(0.0, size, at::kFloat, 4).max_abs, 20 * epsilon_of(at::kFloat));
  EXPECT_DOUBLE_EQ(cap_of(size, at::kFloat, 4).max_abs, 128 * 20 * epsilon_of(at::kFloat));
  EXPECT_NE(budget_of(0.0, size, at::kFloat, 4).why.find("times the largest score, 9"), std::string::npos);
}

TEST(ErrorBudget, NanIsNeverWithinIt) {
  EXPECT_FALSE(within(std::numeric_limits<double>::quiet_NaN(), {1e9, ""}));
  EXPECT_TRUE(within(1.0, {1.0, ""}));
}

TEST(ErrorBudget, RefusesToBuildOnAPlainFormulaThatOverflows) {
  const at::Tensor reference = at::ones({1}, at::kDouble);
  EXPECT_THROW(budget_from(reference, at::full({1}, std::numeric_limits<double>::infinity(), at::kFloat), 1), Error);
}

void expect_agreement(const CoreInput& input) {
  const CoreOutput plain = plain_core(input), judge = judged_core(input);
  for (const auto member : {&CoreOutput::context, &CoreOutput::dq, &CoreOutput::dk, &CoreOutput::dv}) {
    EXPECT_TRUE((plain.*member - judge.*member).abs().max().item<double>() <= 1e-13);
  }
}

TEST(PlainCore, AgreesWithTheLoopsInFloat64) {
  for (const bool causal : {true, false}) expect_agreement(random_core(2, 3, 3, 7, 5, causal, at::kDouble));
}

TEST(PlainCore, AgreesWithTheLoopsOnGroupedHeadsBiasesCapsSinksAndPadding) {
  CoreInput input = random_core(2, 6, 2, 7, 5, true, at::kDouble);
  AttentionConfig config;
  config.H = 6;
  config.given_scale = 0.3;
  config.softcap = 1.5;
  config.alibi = true;
  input.rules = score_rules(config);
  input.sinks = random_normal({6}, 9, RandomStream::kChecks).to(at::kDouble);
  const at::Tensor real_keys = at::tensor({0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}).view({2, 7}).to(at::kBool);
  input.mask = declared_mask(config, 7, 7, real_keys, at::kCPU);
  expect_agreement(input);
  EXPECT_TRUE(judged_core(input).context.select(0, 0).select(1, 0).eq(0).all().item<bool>());  // sees no key
}

TEST(JudgedCore, MixesNoHeadsAndGivesNoGradientsUnasked) {
  CoreInput input = random_core(2, 2, 2, 3, 2, true, at::kFloat);
  input.d_context = at::Tensor();
  const CoreOutput whole = judged_core(input);
  EXPECT_FALSE(whole.dq.defined());
  input.v.select(0, 1).select(0, 1).zero_();
  const CoreOutput changed = judged_core(input);
  EXPECT_TRUE(changed.context[0].equal(whole.context[0]));
  EXPECT_TRUE(changed.context[1][0].equal(whole.context[1][0]));
  EXPECT_TRUE(changed.context[1][1].eq(0).all().item<bool>());
}

// ---- what the new steps do to a rounding ----

at::Tensor row(const std::vector<double>& numbers) { return at::tensor(numbers, at::kDouble).view({1, 1, -1, 1}); }

TEST(LargestScore, IsTheScaledProduct) {
  ScoreRules rules;
  rules.scale = 0.5;
  EXPECT_DOUBLE_EQ(largest_score(row({3, 1}), row({-4, 2}), rules, {}), 6.0);
}

TEST(LargestScore, OfMagnitudesDoesNotCancel) {
  const at::Tensor q = at::tensor({3.0, 4.0}).view({1, 1, 1, 2}), k = at::tensor({4.0, -3.0}).view({1, 1, 1, 2});
  EXPECT_DOUBLE_EQ(largest_score(q, k, {}, {}), 0.0);
  EXPECT_DOUBLE_EQ(largest_score(q, k, {}, {}, /*of_magnitudes=*/true), 24.0);
}

TEST(LargestScore, ASoftcapFlattensIt) {
  ScoreRules rules;
  rules.softcap = 2.0;
  EXPECT_NEAR(largest_score(row({1000}), row({1}), rules, {}), 2.0, 1e-12);    // all of its slope is gone
  EXPECT_NEAR(largest_score(row({0.001}), row({1}), rules, {}), 0.002, 1e-9);  // rounded before the cap and after
}

TEST(LargestScore, ABiasCountsByTheWeightOfItsKeys) {
  ScoreRules rules;
  rules.slopes = {50.0};
  // The far key's bias is -50, and nobody looks at it.
  EXPECT_LT(largest_score(row({0, 0}), row({0, 0}), rules, {}), 1e-18);
  rules.slopes = {std::log(3.0)};
  EXPECT_NEAR(largest_score(row({0, 0}), row({0, 0}), rules, {}), 0.25 * std::log(3.0), 1e-12);
}

/// Two tokens 1 and -1 that every query mixes half and half: the gradient of the value weight is 1 - 1.
LayerInput cancelling_layer() {
  LayerInput input;
  input.config.d_model = input.config.H = 1;
  input.config.causal = false;
  input.config.qkv = QkvLayout::kSeparate;
  input.x = at::tensor({1.0, -1.0}, at::kDouble).view({1, 2, 1});
  for (const char* zero : {"q_proj.weight", "k_proj.weight"}) input.parameters[zero] = at::zeros({1, 1}, at::kDouble);
  for (const char* one : {"v_proj.weight", "o_proj.weight"}) input.parameters[one] = at::ones({1, 1}, at::kDouble);
  return input;
}

TEST(GradientChangeByRounding, IsSomeRoundingsOfTheTermsWhereTheirSumIsZero) {
  const LayerInput input = cancelling_layer();
  const at::Tensor ones = at::ones_like(input.x);
  EXPECT_EQ(plain_layer_backward(input, rules_of(input.config), ones).at("v_proj.weight").item<double>(), 0.0);
  const double change = gradient_change_by_rounding(input, ones, at::kFloat, 0);
  EXPECT_GE(change, epsilon_of(at::kFloat) / 2.0);
  EXPECT_LE(change, 4.0 * epsilon_of(at::kFloat));
  const double coarse = gradient_change_by_rounding(input, ones, at::kBFloat16, 0);
  EXPECT_NEAR(coarse / change, epsilon_of(at::kBFloat16) / epsilon_of(at::kFloat), 0.02 * coarse / change);
}

TEST(GradientChangeByRounding, IsNothingWhereNoGradientComes) {
  const LayerInput input = cancelling_layer();
  EXPECT_EQ(gradient_change_by_rounding(input, at::zeros_like(input.x), at::kFloat, 0), 0.0);
}

TEST(DeclaredMask, IsAlignedToTheBottomRight) {
  AttentionConfig config;
  config.causal = true;
  const at::Tensor mask = declared_mask(config, 2, 4, {}, at::kCPU);
  EXPECT_TRUE(mask.equal(at::tensor({1, 1, 1, 0, 1, 1, 1, 1}).view({1, 1, 2, 4}).to(at::kBool)));
  config.causal = false;
  EXPECT_TRUE(declared_mask(config, 2, 4, {}, at::kCPU).all().item<bool>());
}

}  // namespace
}  // namespace attn
