#include "attention/attention_core.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "attention/mask.h"
#include "core/error.h"
#include "support/shape_cases.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::all_finite;
using test::identical;
using test::max_difference;
using test::random_tensor;
using test::tensor_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

AttentionCoreOptions masked_by(const at::Tensor& mask, double scale = 1.0) {
  AttentionCoreOptions options;
  options.scale = scale;
  options.mask = mask;
  return options;
}

/// q and k of zeros: every visible key gets the same weight, so that the mask alone decides.
AttentionCoreOutput attend_evenly(const at::Tensor& v, const at::Tensor& mask) {
  const at::Tensor q = at::zeros({1, 1, mask.size(0), v.size(-1)}, v.options());
  const at::Tensor k = at::zeros({1, 1, mask.size(1), v.size(-1)}, v.options());
  return scaled_dot_product_attention(q, k, v, masked_by(mask));
}

// --- known answers, by hand ---

TEST(ScaledDotProduct, CausalRowsAverageTheKeysUpToThemselves) {
  const at::Tensor v = tensor_of({1, 1, 3, 2}, {1, 0, 0, 1, 2, 2});
  const AttentionCoreOutput result = attend_evenly(v, causal_mask(3, 3));
  const double third = 1.0 / 3.0;
  EXPECT_LE(max_difference(*result.weights, tensor_of({1, 1, 3, 3}, {1, 0, 0, 0.5, 0.5, 0, third, third, third})),
            1e-15);
  EXPECT_LE(max_difference(result.context, tensor_of({1, 1, 3, 2}, {1, 0, 0.5, 0.5, 1, 1})), 1e-15);
}

TEST(ScaledDotProduct, OneNewQuerySeesTheWholePast) {
  const at::Tensor v = tensor_of({1, 1, 4, 1}, {1, 2, 3, 6});
  EXPECT_EQ(attend_evenly(v, causal_mask(1, 4)).context.item<double>(), 3.0);  // top-left alignment would give 1
}

TEST(ScaledDotProduct, ScaleIsAppliedOnceToTheScores) {
  const at::Tensor q = tensor_of({1, 1, 1, 4}, {4, 0, 0, 0});
  const at::Tensor k = tensor_of({1, 1, 2, 4}, {4, 0, 0, 0, 0, 0, 0, 0});  // raw scores 16 and 0
  AttentionCoreOptions options;
  options.scale = 0.5;  // 1/sqrt(4): scaled scores 8 and 0
  const at::Tensor weights = *scaled_dot_product_attention(q, k, at::zeros_like(k), options).weights;
  EXPECT_NEAR(weights[0][0][0][0].item<double>(), 0.999665, 5e-7);
  EXPECT_NEAR(weights[0][0][0][1].item<double>(), 0.000335, 5e-7);
}

TEST(ScaledDotProduct, QueriesAreRowsAndKeysAreColumns) {
  const at::Tensor q = tensor_of({1, 2, 1}, {1, 2});
  const at::Tensor k = tensor_of({1, 3, 1}, {3, 5, 7});
  test::CapturingObserver observer;
  scaled_dot_product_attention(q, k, k, AttentionCoreOptions{}, &observer);
  EXPECT_TRUE(identical(observer.at(Step::kScores), tensor_of({1, 2, 3}, {3, 5, 7, 6, 10, 14})));
}

TEST(ScaledDotProduct, HiddenScoresAreMinusInfinityAndVisibleOnesUntouched) {
  const at::Tensor q = random_tensor({1, 2, 3, 4}, 1);
  test::CapturingObserver observer;
  scaled_dot_product_attention(q, q, q, masked_by(causal_mask(3, 3), 0.5), &observer);
  const at::Tensor hidden = causal_mask(3, 3).logical_not();
  EXPECT_TRUE(identical(observer.at(Step::kMaskedScores),
                        at::where(hidden, tensor_of({}, {-kInfinity}), observer.at(Step::kScaledScores))));
}

// --- a row that may look at nothing ---

class EmptyRow : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(EmptyRow, HasWeightsAndContextZeroAndFiniteGradients) {
  const at::ScalarType dtype = GetParam();
  const at::Tensor mask = tensor_of({2, 2}, {1, 1, 0, 0}).to(at::kBool);
  at::Tensor q = at::zeros({1, 1, 2, 3}, dtype).requires_grad_();
  at::Tensor k = at::zeros({1, 1, 2, 3}, dtype).requires_grad_();
  at::Tensor v = tensor_of({1, 1, 2, 1}, {4, 8}).to(dtype).requires_grad_();
  const at::Tensor wide_v = v.expand({1, 1, 2, 3});
  test::CapturingObserver observer;
  const AttentionCoreOutput result = scaled_dot_product_attention(q, k, wide_v, masked_by(mask), &observer);
  EXPECT_TRUE(identical(*result.weights, tensor_of({1, 1, 2, 2}, {0.5, 0.5, 0, 0}).to(dtype)));
  EXPECT_TRUE(identical(result.context, tensor_of({1, 1, 2, 3}, {6, 6, 6, 0, 0, 0}).to(dtype)));

  for (const auto& entry : observer.announced) entry.tensor.retain_grad();
  result.context.sum().backward();
  for (const auto& entry : observer.announced) {
    EXPECT_TRUE(all_finite(entry.tensor.grad())) << "gradient of " << step_name(entry.step);
  }
  for (const at::Tensor& leaf : {q, k, v}) EXPECT_TRUE(all_finite(leaf.grad()));
  EXPECT_EQ(test::largest(q.grad()[0][0][1]), 0.0);  // a query that sees nothing cannot matter
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EmptyRow, ::testing::ValuesIn(test::kAllDtypes),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

TEST(ScaledDotProduct, MoreQueriesThanKeysGiveZeroToTheQueriesBeforeTheFirstKey) {
  const AttentionCoreOutput result = attend_evenly(tensor_of({1, 1, 2, 1}, {4, 8}), causal_mask(3, 2));
  EXPECT_TRUE(identical(result.context, tensor_of({1, 1, 3, 1}, {0, 4, 6})));
}

// --- the first token ---

class FirstToken : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(FirstToken, IsItsOwnValueExactly) {
  const at::Tensor q = random_tensor({2, 3, 5, 4}, 1, GetParam());
  const at::Tensor k = random_tensor({2, 3, 5, 4}, 2, GetParam());
  const at::Tensor v = random_tensor({2, 3, 5, 4}, 3, GetParam());
  const AttentionCoreOutput result = scaled_dot_product_attention(q, k, v, masked_by(causal_mask(5, 5), 0.5));
  EXPECT_EQ(result.context.scalar_type(), GetParam());
  EXPECT_TRUE(identical(result.context.select(2, 0), v.select(2, 0)));
  EXPECT_FALSE(identical(result.context.select(2, 1), v.select(2, 1)));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, FirstToken, ::testing::ValuesIn(test::kAllDtypes),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

// --- extreme numbers ---

TEST(ExtremeScores, LargeFiniteScoresPickOneKeyWithoutOverflow) {
  const at::Tensor q = tensor_of({1, 1, 1}, {1e18}).to(at::kFloat);
  const at::Tensor k = tensor_of({1, 3, 1}, {1e18, -1e18, 0}).to(at::kFloat);  // scores up to 1e36, exp of it overflows
  const AttentionCoreOutput result = scaled_dot_product_attention(q, k, k, AttentionCoreOptions{});
  EXPECT_TRUE(identical(*result.weights, tensor_of({1, 1, 3}, {1, 0, 0}).to(at::kFloat)));
}

TEST(ExtremeScores, AVisibleScoreOfMinusInfinityGetsNoWeight) {
  const at::Tensor q = tensor_of({1, 1, 1}, {1e30}).to(at::kFloat);
  const at::Tensor k = tensor_of({1, 3, 1}, {0, -1e30, 0}).to(at::kFloat);
  const at::Tensor mask = at::ones({1, 3}, at::kBool);
  const AttentionCoreOutput result = scaled_dot_product_attention(q, k, at::ones_like(k), masked_by(mask));
  EXPECT_TRUE(identical(*result.weights, tensor_of({1, 1, 3}, {0.5, 0, 0.5}).to(at::kFloat)));
}

TEST(ExtremeScores, OverflowIsNeverTurnedIntoAFiniteNumber) {
  const at::Tensor mask = at::ones({1, 2}, at::kBool);
  const at::Tensor q = tensor_of({1, 1, 1}, {1e30}).to(at::kFloat);
  for (const double key : {1e30, -1e30}) {  // every visible score +inf, then every one -inf
    const at::Tensor k = tensor_of({1, 2, 1}, {key, key}).to(at::kFloat);
    const AttentionCoreOutput result = scaled_dot_product_attention(q, k, at::ones_like(k), masked_by(mask));
    EXPECT_TRUE(result.weights->isnan().all().item<bool>()) << key;
    EXPECT_TRUE(result.context.isnan().all().item<bool>()) << key;
  }
}

TEST(ExtremeScores, ANaNReachesEveryRowThatSeesIt) {
  at::Tensor k = random_tensor({1, 1, 4, 3}, 1);
  k[0][0][2][1] = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor q = random_tensor({1, 1, 4, 3}, 2);
  const at::Tensor context = scaled_dot_product_attention(q, k, q, masked_by(causal_mask(4, 4))).context;
  EXPECT_TRUE(all_finite(context.slice(2, 0, 2)));
  EXPECT_TRUE(context.slice(2, 2, 4).isnan().all().item<bool>());
}

// --- dropout ---

TEST(Dropout, ZeroesAShareOfTheWeightsAndScalesTheRest) {
  at::manual_seed(3);
  const at::Tensor q = at::zeros({1, 1, 200, 1}, at::kDouble);
  AttentionCoreOptions options;
  options.dropout = 0.25;
  test::CapturingObserver observer;
  const AttentionCoreOutput result = scaled_dot_product_attention(q, q, q, options, &observer);
  EXPECT_LE(max_difference(*result.weights, at::full_like(*result.weights, 1.0 / 200)), 1e-15);  // before dropout
  const at::Tensor dropped = observer.at(Step::kDroppedWeights);
  const at::Tensor survivors = dropped.masked_select(dropped != 0);
  EXPECT_LE(max_difference(survivors, at::full_like(survivors, 1.0 / 200 / 0.75)), 1e-15);
  const double share = 1.0 - static_cast<double>(survivors.numel()) / static_cast<double>(dropped.numel());
  EXPECT_NEAR(share, 0.25, 5 * std::sqrt(0.25 * 0.75 / 40000));
}

// --- the library's own attention as an outside judge ---

class AgainstLibrary : public ::testing::TestWithParam<test::CoreShape> {
 protected:
  /// Forward and all three gradients, with a causal mask aligned to the bottom right, then with none.
  static void compare(const test::CoreShape& shape, at::ScalarType dtype, double relative) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(shape.d_k));
    for (const bool causal : {true, false}) {
      AttentionCoreOptions options;
      options.scale = scale;
      if (causal) options.mask = causal_mask(shape.T_q, shape.T_k);
      const auto leaves = [&] {
        return std::vector<at::Tensor>{
            random_tensor({shape.B, shape.H, shape.T_q, shape.d_k}, 1, dtype).requires_grad_(),
            random_tensor({shape.B, shape.H, shape.T_k, shape.d_k}, 2, dtype).requires_grad_(),
            random_tensor({shape.B, shape.H, shape.T_k, shape.d_k}, 3, dtype).requires_grad_()};
      };
      const at::Tensor dy = random_tensor({shape.B, shape.H, shape.T_q, shape.d_k}, 4, dtype);

      const std::vector<at::Tensor> ours = leaves();
      const at::Tensor context = scaled_dot_product_attention(ours[0], ours[1], ours[2], options).context;
      context.backward(dy);
      const std::vector<at::Tensor> theirs = leaves();
      const at::Tensor expected =
          at::scaled_dot_product_attention(theirs[0], theirs[1], theirs[2], options.mask, 0.0, false, scale);
      expected.backward(dy);

      EXPECT_LE(max_difference(context, expected), test::limit_for(expected, relative)) << "causal " << causal;
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_LE(max_difference(ours[i].grad(), theirs[i].grad()), test::limit_for(theirs[i].grad(), relative))
            << "gradient of "
            << "qkv"[i] << ", causal " << causal;
      }
    }
  }
};

TEST_P(AgainstLibrary, ForwardAndGradientsAgreeInFloat32) { compare(GetParam(), at::kFloat, 1e-6); }
TEST_P(AgainstLibrary, ForwardAndGradientsAgreeInFloat64) { compare(GetParam(), at::kDouble, 1e-13); }

INSTANTIATE_TEST_SUITE_P(Shapes, AgainstLibrary, ::testing::ValuesIn(test::kCoreShapes),
                         test::case_name<test::CoreShape>);

// --- what is refused ---

template <typename Work>
std::string shape_error(Work work) {
  try {
    work();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no ShapeError";
}

std::string refusal(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const AttentionCoreOptions& options = {}) {
  return shape_error([&] { scaled_dot_product_attention(q, k, v, options); });
}

TEST(ScaledDotProduct, RefusesShapesThatDoNotBelongTogether) {
  const at::Tensor q = at::zeros({1, 2, 3, 4});
  EXPECT_EQ(refusal(q, at::zeros({1, 2, 3, 5}), at::zeros({1, 2, 3, 5})),
            "k: expected shape (1, 2, -1, 4) (-1 is any), got (1, 2, 3, 5)");
  EXPECT_EQ(refusal(q, at::zeros({1, 3, 3, 4}), at::zeros({1, 3, 3, 4})),
            "k: expected shape (1, 2, -1, 4) (-1 is any), got (1, 3, 3, 4)");
  EXPECT_EQ(refusal(q, q, at::zeros({1, 2, 2, 4})), "v: expected shape (1, 2, 3, 4), got (1, 2, 2, 4)");
}

TEST(ScaledDotProduct, RefusesQueriesWithoutAxes) {
  const at::Tensor row = random_tensor({4}, 1);
  EXPECT_THROW(scaled_dot_product_attention(row, row, row, AttentionCoreOptions{}), ShapeError);
}

TEST(ScaledDotProduct, RefusesAMaskThatIsNotBoolean) {
  // Read as booleans, an additive mask would mean its opposite: 0 shows a key there and hides it here.
  const at::Tensor q = random_tensor({1, 1, 3, 2}, 1);
  try {
    scaled_dot_product_attention(q, q, q, masked_by(at::zeros({3, 3})));
    FAIL() << "expected a ShapeError";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "mask: expected bool, true = may look, got Float");
  }
}

TEST(ScaledDotProduct, RefusesMixedDtypes) {
  const at::Tensor q = at::zeros({1, 2, 3, 4});
  EXPECT_EQ(refusal(q, q.to(at::kDouble), q), "k is Double on cpu, but q is Float on cpu");
  EXPECT_EQ(refusal(q, q, q.to(at::kHalf)), "v is Half on cpu, but q is Float on cpu");
}

}  // namespace
}  // namespace attn
