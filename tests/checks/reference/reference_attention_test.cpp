#include "checks/reference/reference_attention.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "checks/reference/may_look.h"
#include "checks/reference/reference_head.h"

namespace attn {
namespace {

/// Sizes; q, k, v filled with zeros.
ReferenceCoreInput zero_input(std::int64_t B, std::int64_t H, std::int64_t T_q, std::int64_t T_k, std::int64_t d_k,
                              bool causal, std::int64_t H_kv = 0) {
  ReferenceCoreInput input;
  input.config.H = H;
  input.config.given_d_k = d_k;
  input.config.causal = causal;
  if (H_kv != 0) input.config.given_H_kv = H_kv;
  input.B = B;
  input.T_q = T_q;
  input.T_k = T_k;
  input.q.assign(static_cast<std::size_t>(B * H * T_q * d_k), 0.0);
  input.k.assign(static_cast<std::size_t>(B * input.config.H_kv() * T_k * d_k), 0.0);
  input.v = input.k;
  return input;
}

std::vector<double> random_numbers(std::size_t count) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = *rc::gen::inRange(-2000, 2001) / 1000.0;
  return numbers;
}

/// Grouped heads, every change of the scores, every mask, padding, T_q other than T_k.
ReferenceCoreInput random_input() {
  const auto size = [](int limit) { return static_cast<std::int64_t>(*rc::gen::inRange(1, limit)); };
  const auto now_and_then = [] { return *rc::gen::inRange(0, 3) == 0; };
  const std::int64_t H_kv = size(3);
  ReferenceCoreInput input = zero_input(size(3), H_kv * size(4), size(5), size(5), size(4), now_and_then(), H_kv);
  input.q = random_numbers(input.q.size());
  input.k = random_numbers(input.k.size());
  input.v = random_numbers(input.v.size());
  AttentionConfig& config = input.config;
  if (now_and_then()) config.given_scale = 0.1 * static_cast<double>(size(15));
  if (now_and_then()) config.softcap = 0.5 * static_cast<double>(size(5));
  if (now_and_then()) config.window = size(4);
  if (now_and_then()) config.mask = DilatedMask{size(3)};
  config.alibi = now_and_then();
  config.sink = now_and_then();
  if (config.sink) input.sinks = random_numbers(static_cast<std::size_t>(config.H));
  if (now_and_then()) {
    for (std::int64_t key = 0; key < input.B * input.T_k; ++key) input.real_keys.push_back(!now_and_then());
  }
  return input;
}

double loss(const ReferenceCoreInput& input, const std::vector<double>& d_context) {
  const std::vector<double> context = reference_core(input).context;
  double sum = 0.0;
  for (std::size_t index = 0; index < context.size(); ++index) sum += context[index] * d_context[index];
  return sum;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double limit) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t index = 0; index < actual.size(); ++index) {
    EXPECT_TRUE(std::abs(actual[index] - expected[index]) <= limit)
        << index << ": " << actual[index] << ", expected " << expected[index];
  }
}

TEST(ReferenceCore, EqualScoresGiveEachQueryTheMeanOfWhatItMaySee) {
  ReferenceCoreInput input = zero_input(1, 1, 3, 3, 2, true);
  input.v = {1, 0, 0, 1, 2, 2};
  const ReferenceCoreOutput output = reference_core(input);
  expect_near(output.weights, {1, 0, 0, 0.5, 0.5, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-15);
  expect_near(output.context, {1, 0, 0.5, 0.5, 1, 1}, 1e-15);
}

TEST(ReferenceCore, RowsSumToOneWhereColumnsDoNot) {
  ReferenceCoreInput input = zero_input(1, 1, 3, 3, 1, true);
  const std::vector<double> weights = reference_core(input).weights;
  EXPECT_NEAR(weights[0] + weights[3] + weights[6], 1.0 + 0.5 + 1.0 / 3, 1e-15);
}

TEST(ReferenceCore, DividesByTheRootOfTheHeadsWidth) {
  ReferenceCoreInput input = zero_input(1, 1, 1, 2, 4, false);
  input.q = {4, 0, 0, 0};
  input.k = {4, 0, 0, 0, 0, 0, 0, 0};  // raw scores 16 and 0
  expect_near(reference_core(input).weights, {0.9996646498695336, 0.0003353501304664781}, 1e-15);
}

TEST(ReferenceCore, ARowThatSeesNoKeyIsZeroAndHasZeroGradients) {
  ReferenceCoreInput input = zero_input(1, 1, 3, 2, 1, true);  // row 0 sees nothing
  input.q = {1, 2, 3};
  input.v = {4, 8};
  const ReferenceCoreOutput output = reference_core(input);
  expect_near(output.weights, {0, 0, 1, 0, 0.5, 0.5}, 1e-15);
  expect_near(output.context, {0, 4, 6}, 1e-15);
  const ReferenceCoreGradients gradients = reference_core_backward(input, {100, 1, 1});
  EXPECT_EQ(gradients.dq[0], 0.0);
  expect_near(gradients.dv, {1.5, 0.5}, 1e-15);
}

TEST(ReferenceCore, OneQueryAgainstALongerKeyListSeesAllOfIt) {
  ReferenceCoreInput input = zero_input(1, 1, 1, 4, 1, true);
  input.v = {1, 2, 3, 6};
  expect_near(reference_core(input).context, {3}, 1e-15);
}

TEST(ReferenceCore, OneTokenReturnsItsValueAndMovesNeitherQueryNorKey) {
  ReferenceCoreInput input = zero_input(1, 1, 1, 1, 2, true);
  input.q = {0.3, -2};
  input.k = {5, 1};
  input.v = {7, -3};
  expect_near(reference_core(input).context, {7, -3}, 0.0);
  const ReferenceCoreGradients gradients = reference_core_backward(input, {2, 1});
  expect_near(gradients.dq, {0, 0}, 0.0);
  expect_near(gradients.dk, {0, 0}, 0.0);
  expect_near(gradients.dv, {2, 1}, 0.0);
}

TEST(ReferenceCore, LargeScoresDoNotOverflow) {
  ReferenceCoreInput input = zero_input(1, 1, 1, 2, 1, false);
  input.q = {1e4};
  input.k = {1e4, 1e4 - 1};
  expect_near(reference_core(input).weights, {1, 0}, 1e-15);
}

TEST(ReferenceCore, NanInAVisibleKeyReachesTheResultAndInAHiddenOneDoesNot) {
  ReferenceCoreInput input = zero_input(1, 1, 2, 2, 1, true);
  input.q = {1, 1};
  input.v = {1, 3};
  input.k = {0, std::nan("")};
  const std::vector<double> context = reference_core(input).context;
  EXPECT_EQ(context[0], 1.0);
  EXPECT_TRUE(std::isnan(context[1]));
}

TEST(ReferenceCore, HeadsAndBatchItemsDoNotMix) {
  ReferenceCoreInput input = zero_input(2, 2, 1, 1, 1, false);
  input.v = {1, 2, 3, 4};
  expect_near(reference_core(input).context, {1, 2, 3, 4}, 0.0);
}

// ---- what may happen to a score ----

TEST(ReferenceCore, HidesPaddingBesideWhatCausalHides) {
  ReferenceCoreInput input = zero_input(1, 1, 4, 4, 1, true);
  input.real_keys = {true, true, true, false};
  const double third = 1.0 / 3.0;
  expect_near(reference_core(input).weights,
              {1, 0, 0, 0, 0.5, 0.5, 0, 0, third, third, third, 0, third, third, third, 0}, 1e-15);
}

TEST(ReferenceCore, ARowHiddenByAMaskOfOnesOwnIsZero) {
  ReferenceCoreInput input = zero_input(1, 1, 2, 2, 1, false);
  input.config.mask = RowsMask{2, 2, {true, true, false, false}, std::nullopt, ""};
  input.v = {4, 8};
  const ReferenceCoreOutput output = reference_core(input);
  expect_near(output.weights, {0.5, 0.5, 0, 0}, 1e-15);
  expect_near(output.context, {6, 0}, 1e-15);
}

TEST(ReferenceCore, NeighbouringQueryHeadsShareAKeyHead) {
  ReferenceCoreInput input = zero_input(1, 4, 1, 1, 1, true, 2);
  input.v = {10, 20};
  expect_near(reference_core(input).context, {10, 10, 20, 20}, 0.0);
  const ReferenceCoreGradients gradients = reference_core_backward(input, {1, 2, 4, 8});
  expect_near(gradients.dv, {3, 12}, 0.0);  // what both of its query heads send back
}

TEST(ReferenceCore, ASinkTakesItsShareAndHasNoValue) {
  // Two visible keys and a sink, all of score 0.
  ReferenceCoreInput input = zero_input(1, 1, 2, 2, 1, true);
  input.config.sink = true;
  input.sinks = {0};
  input.v = {6, 12};
  const double third = 1.0 / 3.0;
  const ReferenceCoreOutput output = reference_core(input);
  expect_near(output.weights, {0.5, 0, third, third}, 1e-15);
  expect_near(output.context, {3, 6}, 1e-15);
  // The sink's share 1/3 of row 1 times minus what the row gives: - 1/3 * 6, and - 1/2 * 3 of row 0.
  expect_near(reference_core_backward(input, {1, 1}).dsinks, {-3.5}, 1e-15);
}

TEST(ReferenceCore, ALargeSinkDoesNotOverflow) {
  ReferenceCoreInput input = zero_input(1, 1, 1, 1, 1, true);
  input.config.sink = true;
  input.sinks = {1e4};
  EXPECT_EQ(reference_core(input).weights[0], 0.0);
}

TEST(ReferenceCore, ASoftcapBendsTheScoreBeforeTheMask) {
  ReferenceCoreInput input = zero_input(1, 1, 1, 2, 1, false);
  input.config.given_scale = 1.0;
  input.config.softcap = 2.0;
  input.q = {1};
  input.k = {3, 0};
  const double score = 2.0 * std::tanh(1.5);
  expect_near(reference_core(input).weights, {1 / (1 + std::exp(-score)), 1 / (1 + std::exp(score))}, 1e-15);
  input.config.causal = true;
  input.T_q = 2;
  input.q = {1, 1};
  EXPECT_EQ(reference_core(input).weights[1], 0.0);  // hidden, not 2 tanh(-inf)
}

TEST(ReferenceCore, TakesTheGivenScale) {
  ReferenceCoreInput input = zero_input(1, 1, 1, 2, 4, false);
  input.config.given_scale = 0.25;
  input.q = {4, 0, 0, 0};
  input.k = {std::log(3.0), 0, 0, 0, 0, 0, 0, 0};
  expect_near(reference_core(input).weights, {0.75, 0.25}, 1e-15);
}

TEST(ReferenceCore, AlibiTakesOffTheSlopeTimesTheDistance) {
  // One head of one: slope 2^-8. Two queries of three keys stand at 1 and 2.
  ReferenceCoreInput input = zero_input(1, 1, 2, 3, 1, true);
  input.config.alibi = true;
  const double near = std::exp(-1.0 / 256), far = std::exp(-2.0 / 256);
  expect_near(
      reference_core(input).weights,
      {near / (1 + near), 1 / (1 + near), 0, far / (1 + near + far), near / (1 + near + far), 1 / (1 + near + far)},
      1e-15);
}

TEST(ReferenceCore, HasTheSlopesOfThePaper) {
  for (std::int64_t h = 0; h < 8; ++h) {
    EXPECT_DOUBLE_EQ(reference_alibi_slope(h, 8), std::ldexp(1.0, static_cast<int>(-h - 1)));
  }
  EXPECT_DOUBLE_EQ(reference_alibi_slope(0, 16), std::sqrt(0.5));
  // Six heads: the four slopes of four heads, then the first and third of eight.
  EXPECT_DOUBLE_EQ(reference_alibi_slope(0, 6), 0.25);
  EXPECT_DOUBLE_EQ(reference_alibi_slope(3, 6), std::ldexp(1.0, -8));
  EXPECT_DOUBLE_EQ(reference_alibi_slope(4, 6), 0.5);
  EXPECT_DOUBLE_EQ(reference_alibi_slope(5, 6), 0.125);
}

RC_GTEST_PROP(ReferenceCore, GradientsEqualCentralDifferences, ()) {
  const ReferenceCoreInput input = random_input();
  const std::vector<double> d_context = random_numbers(input.q.size());
  const ReferenceCoreGradients gradients = reference_core_backward(input, d_context);
  constexpr double kStep = 1e-5;
  const auto check = [&](std::vector<double> ReferenceCoreInput::*member, const std::vector<double>& gradient) {
    for (std::size_t index = 0; index < gradient.size(); ++index) {
      ReferenceCoreInput above = input;
      ReferenceCoreInput below = input;
      (above.*member)[index] += kStep;
      (below.*member)[index] -= kStep;
      const double difference = (loss(above, d_context) - loss(below, d_context)) / (2 * kStep);
      RC_ASSERT(std::abs(difference - gradient[index]) <= 1e-7);
    }
  };
  check(&ReferenceCoreInput::q, gradients.dq);
  check(&ReferenceCoreInput::k, gradients.dk);
  check(&ReferenceCoreInput::v, gradients.dv);
  check(&ReferenceCoreInput::sinks, gradients.dsinks);
}

RC_GTEST_PROP(ReferenceCore, RowsSumToOneOrToZeroWhereNothingIsVisible, ()) {
  const ReferenceCoreInput input = random_input();
  const std::vector<double> weights = reference_core(input).weights;
  std::size_t next = 0;
  for (std::int64_t row = 0; row < input.B * input.config.H * input.T_q; ++row) {
    const std::int64_t b = row / (input.config.H * input.T_q), i = row % input.T_q;
    double sum = 0.0;
    bool sees_something = false;
    for (std::int64_t j = 0; j < input.T_k; ++j) {
      const bool is_token = input.real_keys.empty() || input.real_keys[static_cast<std::size_t>(b * input.T_k + j)];
      const bool sees = is_token && may_look(input.config, i, j, input.T_q, input.T_k);
      sees_something = sees_something || sees;
      RC_ASSERT((weights[next] > 0.0) == sees);
      sum += weights[next++];
    }
    if (!sees_something) RC_ASSERT(sum == 0.0);
    if (sees_something && !input.config.sink) RC_ASSERT(std::abs(sum - 1.0) <= 1e-14);
    if (sees_something && input.config.sink) RC_ASSERT(sum < 1.0);
  }
}

}  // namespace
}  // namespace attn
