#include "attention/heads.h"

#include <gtest/gtest.h>

#include "support/shape_cases.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::tensor_of;

// Three tokens, two heads of width two, numbered through. T differs from H, so a split by a bare reshape, which keeps
// the first three pairs for head 0, cannot pass.
TEST(Heads, SplitTakesColumnsOfEveryTokenNotTokens) {
  const at::Tensor tokens = at::arange(12, at::kDouble).reshape({1, 3, 4});
  const at::Tensor expected = tensor_of({1, 2, 3, 2}, {0, 1, 4, 5, 8, 9,  // head 0
                                                       2, 3, 6, 7, 10, 11});
  EXPECT_TRUE(identical(split_heads(tokens, 2), expected));
}

TEST(Heads, MergePutsHeadsSideBySideInOrder) {
  const at::Tensor heads = tensor_of({1, 2, 3, 2}, {0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11});
  EXPECT_TRUE(identical(merge_heads(heads), at::arange(12, at::kDouble).reshape({1, 3, 4})));
}

TEST(Heads, MergeIsContiguous) { EXPECT_TRUE(merge_heads(at::zeros({2, 3, 4, 5})).is_contiguous()); }

TEST(Heads, SplitWorksOnASliceOfAFusedProjection) {
  const at::Tensor qkv = at::arange(24, at::kDouble).reshape({1, 2, 12});
  const QueryKeyValue thirds = split_qkv_widths(qkv, 4);
  const at::Tensor expected = tensor_of({1, 2, 2, 2}, {4, 5, 16, 17, 6, 7, 18, 19});
  EXPECT_TRUE(identical(split_heads(thirds.k, 2), expected));
}

TEST(Heads, TheLastAxisHoldsQThenKThenV) {
  const QueryKeyValue thirds = split_qkv_widths(tensor_of({1, 1, 6}, {0, 1, 2, 3, 4, 5}), 2);
  EXPECT_TRUE(identical(thirds.q, tensor_of({1, 1, 2}, {0, 1})));
  EXPECT_TRUE(identical(thirds.k, tensor_of({1, 1, 2}, {2, 3})));
  EXPECT_TRUE(identical(thirds.v, tensor_of({1, 1, 2}, {4, 5})));
}

TEST(Heads, KeysAndValuesAreAlikeHoweverWideTheQueries) {
  const QueryKeyValue parts = split_qkv_widths(tensor_of({1, 1, 6}, {0, 1, 2, 3, 4, 5}), 4);
  EXPECT_TRUE(identical(parts.q, tensor_of({1, 1, 4}, {0, 1, 2, 3})));
  EXPECT_TRUE(identical(parts.k, tensor_of({1, 1, 1}, {4})));
  EXPECT_TRUE(identical(parts.v, tensor_of({1, 1, 1}, {5})));
}

// Four heads of one token each, width 1, over two key heads.
TEST(Heads, AGroupIsARunOfNeighbours) {
  const at::Tensor heads = tensor_of({1, 4, 1, 1}, {0, 1, 2, 3});
  EXPECT_TRUE(identical(stack_groups(heads, 2), tensor_of({1, 2, 2, 1}, {0, 1, 2, 3})));
}

TEST(Heads, UnstackingUndoesStacking) {
  const at::Tensor heads = test::random_tensor({2, 6, 5, 3}, 1);
  for (const std::int64_t key_heads : {1, 2, 3, 6}) {
    EXPECT_TRUE(identical(unstack_groups(stack_groups(heads, key_heads), 6), heads)) << key_heads;
  }
}

class HeadShapes : public ::testing::TestWithParam<test::LayerShape> {};

TEST_P(HeadShapes, MergeUndoesSplit) {
  const auto& shape = GetParam();
  const at::Tensor tokens = test::random_tensor({shape.B, shape.T, shape.d_model}, 1);
  const at::Tensor heads = split_heads(tokens, shape.H);
  EXPECT_EQ(heads.sizes(), at::IntArrayRef({shape.B, shape.H, shape.T, shape.d_model / shape.H}));
  EXPECT_TRUE(identical(merge_heads(heads), tokens));
}

INSTANTIATE_TEST_SUITE_P(Shapes, HeadShapes, ::testing::ValuesIn(test::kLayerShapes),
                         test::case_name<test::LayerShape>);

}  // namespace
}  // namespace attn
