#include "checks/reference_attention.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attn {
namespace {

/// Sizes; q, k, v filled with zeros.
ReferenceCoreInput zero_input(std::int64_t B, std::int64_t H, std::int64_t T_q, std::int64_t T_k, std::int64_t d_k,
                              bool causal) {
  ReferenceCoreInput input;
  input.B = B;
  input.H = H;
  input.T_q = T_q;
  input.T_k = T_k;
  input.d_k = d_k;
  input.causal = causal;
  input.q.assign(static_cast<std::size_t>(B * H * T_q * d_k), 0.0);
  input.k.assign(static_cast<std::size_t>(B * H * T_k * d_k), 0.0);
  input.v = input.k;
  return input;
}

std::vector<double> random_numbers(std::size_t count) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = *rc::gen::inRange(-2000, 2001) / 1000.0;
  return numbers;
}

ReferenceCoreInput random_input() {
  const auto size = [](int limit) { return static_cast<std::int64_t>(*rc::gen::inRange(1, limit)); };
  ReferenceCoreInput input = zero_input(size(3), size(3), size(5), size(5), size(4), *rc::gen::arbitrary<bool>());
  input.q = random_numbers(input.q.size());
  input.k = random_numbers(input.k.size());
  input.v = random_numbers(input.v.size());
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
}

RC_GTEST_PROP(ReferenceCore, RowsSumToOneOrToZeroWhereNothingIsVisible, ()) {
  const ReferenceCoreInput input = random_input();
  const std::vector<double> weights = reference_core(input).weights;
  for (std::int64_t row = 0; row < input.B * input.H * input.T_q; ++row) {
    double sum = 0.0;
    for (std::int64_t j = 0; j < input.T_k; ++j) sum += weights[static_cast<std::size_t>(row * input.T_k + j)];
    const bool sees_nothing = input.causal && row % input.T_q + input.T_k - input.T_q < 0;
    RC_ASSERT(std::abs(sum - (sees_nothing ? 0.0 : 1.0)) <= 1e-14);
  }
}

}  // namespace
}  // namespace attn
