#include "attention/alibi.h"

#include <gtest/gtest.h>

#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::tensor_of;

TEST(Alibi, SlopesOfEightHeadsAreThePowersOfOneHalf) {
  const at::Tensor expected =
      tensor_of({8}, {1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32, 1.0 / 64, 1.0 / 128, 1.0 / 256});
  EXPECT_TRUE(test::identical(alibi_slopes(8), expected));
}

// Six heads: those of four, then the first and the third of eight.
TEST(Alibi, SlopesBetweenPowersOfTwoTakeEverySecondOfTwiceAsMany) {
  const at::Tensor expected = tensor_of({6}, {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8});
  EXPECT_TRUE(test::identical(alibi_slopes(6), expected));
}

TEST(Alibi, BiasFallsWithTheDistance) {
  const at::Tensor bias = alibi_bias(8, 3, 3, at::kDouble);
  EXPECT_EQ(bias.sizes(), at::IntArrayRef({8, 3, 3}));
  EXPECT_TRUE(test::identical(bias[0], tensor_of({3, 3}, {0, -0.5, -1, -0.5, 0, -0.5, -1, -0.5, 0})));
}

TEST(Alibi, FewQueriesAreTheLastTokens) {
  EXPECT_TRUE(test::identical(alibi_bias(4, 2, 5, at::kDouble), alibi_bias(4, 5, 5, at::kDouble).slice(1, 3)));
}

}  // namespace
}  // namespace attn
