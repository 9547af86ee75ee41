#include "attention/mask.h"

#include <gtest/gtest.h>

#include "support/shape_cases.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::tensor_of;

at::Tensor bool_rows(at::IntArrayRef shape, const std::vector<double>& values) {
  return tensor_of(shape, values).to(at::kBool);
}

TEST(CausalMask, SquareIsTheLowerTriangleWithItsDiagonal) {
  EXPECT_TRUE(test::identical(causal_mask(3, 3), bool_rows({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1})));
}

TEST(CausalMask, FewerQueriesThanKeysAreAlignedToTheBottomRight) {
  EXPECT_TRUE(test::identical(causal_mask(2, 4), bool_rows({2, 4}, {1, 1, 1, 0, 1, 1, 1, 1})));
}

TEST(CausalMask, MoreQueriesThanKeysLeaveTheFirstQueriesWithoutAKey) {
  EXPECT_TRUE(test::identical(causal_mask(3, 2), bool_rows({3, 2}, {0, 0, 1, 0, 1, 1})));
}

TEST(CausalMask, OneNewQuerySeesEveryKey) {
  EXPECT_TRUE(test::identical(causal_mask(1, 4), bool_rows({1, 4}, {1, 1, 1, 1})));
}

class CausalMaskShapes : public ::testing::TestWithParam<test::CoreShape> {};

TEST_P(CausalMaskShapes, HidesEveryLaterKeyAndNoOther) {
  const auto& shape = GetParam();
  const at::Tensor mask = causal_mask(shape.T_q, shape.T_k);
  ASSERT_EQ(mask.scalar_type(), at::kBool);
  ASSERT_EQ(mask.sizes(), at::IntArrayRef({shape.T_q, shape.T_k}));
  for (std::int64_t query = 0; query < shape.T_q; ++query) {
    for (std::int64_t key = 0; key < shape.T_k; ++key) {
      const bool may_look = key <= query + (shape.T_k - shape.T_q);
      EXPECT_EQ(mask[query][key].item<bool>(), may_look) << "query " << query << ", key " << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CausalMaskShapes, ::testing::ValuesIn(test::kCoreShapes),
                         test::case_name<test::CoreShape>);

}  // namespace
}  // namespace attn
