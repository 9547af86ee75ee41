#include "attention/mask.h"

#include <gtest/gtest.h>

#include "core/error.h"
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

std::vector<std::int64_t> visible_keys_a_row(const at::Tensor& mask) {
  const at::Tensor counts = mask.sum(-1).contiguous();
  return {counts.const_data_ptr<std::int64_t>(), counts.const_data_ptr<std::int64_t>() + counts.numel()};
}

TEST(WindowMask, CountsTheTokenItself) {
  const at::Tensor mask = causal_mask(6, 6).logical_and(window_mask({6, 6}, 3, /*both_sides=*/false, at::kCPU));
  EXPECT_EQ(visible_keys_a_row(mask), (std::vector<std::int64_t>{1, 2, 3, 3, 3, 3}));
  EXPECT_TRUE(mask[5][3].item<bool>());
  EXPECT_FALSE(mask[5][2].item<bool>());
}

TEST(WindowMask, AsWideAsTheSequenceHidesNothing) {
  for (const std::int64_t window : {6, 7, 100}) {
    EXPECT_TRUE(window_mask({6, 6}, window, true, at::kCPU).all().item<bool>()) << window;
  }
}

TEST(WindowMask, OnBothSidesIsSymmetric) {
  const at::Tensor mask = window_mask({5, 5}, 2, /*both_sides=*/true, at::kCPU);
  EXPECT_TRUE(test::identical(mask, mask.t()));
  EXPECT_EQ(visible_keys_a_row(mask), (std::vector<std::int64_t>{2, 3, 3, 3, 2}));
}

TEST(WindowMask, LooksAtPositionsNotAtRows) {
  const at::Tensor whole = window_mask({8, 8}, 3, false, at::kCPU);
  EXPECT_TRUE(test::identical(window_mask({2, 4, 5, 3}, 3, false, at::kCPU), whole.slice(0, 5, 7).slice(1, 3, 7)));
}

TEST(OwnMask, PrefixTokensSeeEachOther) {
  EXPECT_TRUE(
      test::identical(own_mask(PrefixMask{2}, {3, 3}, at::kCPU), bool_rows({3, 3}, {1, 1, 0, 1, 1, 0, 1, 1, 1})));
}

TEST(OwnMask, DocumentsSeeThemselvesAndTheRestIsOneMore) {
  EXPECT_TRUE(test::identical(own_mask(DocumentMask{{2, 1}}, {5, 5}, at::kCPU), bool_rows({5, 5}, {1, 1, 0, 0, 0,  //
                                                                                                   1, 1, 0, 0, 0,  //
                                                                                                   0, 0, 1, 0, 0,  //
                                                                                                   0, 0, 0, 1, 1,  //
                                                                                                   0, 0, 0, 1, 1})));
}

TEST(OwnMask, DilationCountsFromTheQueryItself) {
  EXPECT_TRUE(
      test::identical(own_mask(DilatedMask{2}, {3, 3}, at::kCPU), bool_rows({3, 3}, {1, 0, 1, 0, 1, 0, 1, 0, 1})));
}

TEST(OwnMask, RowsAreTakenAsGiven) {
  const RowsMask rows{2, 3, {true, false, true, false, true, false}, {}, ""};
  EXPECT_TRUE(test::identical(own_mask(rows, {2, 3}, at::kCPU), bool_rows({2, 3}, {1, 0, 1, 0, 1, 0})));
}

TEST(OwnMask, OfALaterPlaceIsThatPartOfTheWhole) {
  const MaskPlace place{2, 4, 3, 1};
  for (const MaskConfig& mask :
       std::vector<MaskConfig>{BidirectionalMask{}, PrefixMask{4}, DocumentMask{{2, 2}}, DilatedMask{3}}) {
    const at::Tensor whole = own_mask(mask, {6, 6}, at::kCPU);
    EXPECT_TRUE(test::identical(own_mask(mask, place, at::kCPU), whole.slice(0, 3, 5).slice(1, 1, 5)))
        << mask_kind(mask);
  }
}

TEST(OwnMask, TooFewRowsAreRefused) {
  const RowsMask rows{2, 2, {true, false, true, true}, {}, ""};
  try {
    own_mask(rows, {1, 3, 2, 0}, at::kCPU);
    FAIL() << "accepted";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "mask: has 2 rows of 2 keys, expected at least 3 of 3");
  }
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
