// The judge's own reading of the mask, cell by cell, and the tensor made of it.
#include "checks/reference/may_look.h"

#include <ATen/ATen.h>

#include <string>

#include <gtest/gtest.h>

#include "checks/reference/plain_attention.h"
#include "core/error.h"

namespace attn {
namespace {

/// A row of 0 and 1 for each query.
std::string picture(const AttentionConfig& config, std::int64_t T_q, std::int64_t T_k) {
  std::string rows;
  for (std::int64_t i = 0; i < T_q; ++i) {
    if (i > 0) rows += " ";
    for (std::int64_t j = 0; j < T_k; ++j) rows += may_look(config, i, j, T_q, T_k) ? "1" : "0";
  }
  return rows;
}

AttentionConfig layer(bool causal) {
  AttentionConfig config;
  config.causal = causal;
  return config;
}

AttentionConfig masked(bool causal, const MaskConfig& mask) {
  AttentionConfig config = layer(causal);
  config.mask = mask;
  return config;
}

TEST(MayLook, ACausalQuerySeesItselfAndWhatIsBeforeIt) { EXPECT_EQ(picture(layer(true), 3, 3), "100 110 111"); }

TEST(MayLook, WithoutAMaskEveryKeyIsSeen) { EXPECT_EQ(picture(layer(false), 2, 3), "111 111"); }

TEST(MayLook, CausalIsAlignedToTheBottomRight) {
  EXPECT_EQ(picture(layer(true), 1, 4), "1111");
  EXPECT_EQ(picture(layer(true), 2, 4), "1110 1111");
  EXPECT_EQ(picture(layer(true), 3, 2), "00 10 11");
}

TEST(MayLook, AWindowOfThreeHoldsThreeKeysWithTheTokenItself) {
  AttentionConfig config = layer(true);
  config.window = 3;
  EXPECT_EQ(picture(config, 6, 6), "100000 110000 111000 011100 001110 000111");
  EXPECT_EQ(picture(config, 2, 6), "001110 000111");
  config.window = 6;
  EXPECT_EQ(picture(config, 6, 6), picture(layer(true), 6, 6));
  config.window = 1;
  EXPECT_EQ(picture(config, 2, 2), "10 01");
}

TEST(MayLook, AWindowWithoutCausalReachesToBothSides) {
  AttentionConfig config = layer(false);
  config.window = 2;
  EXPECT_EQ(picture(config, 4, 4), "1100 1110 0111 0011");
}

TEST(MayLook, APrefixSeesItselfAndLaterTokensWhatIsBeforeThem) {
  EXPECT_EQ(picture(masked(false, PrefixMask{2}), 4, 4), "1100 1100 1110 1111");
}

TEST(MayLook, DocumentsSeeThemselvesAndTheRestIsOneMore) {
  EXPECT_EQ(picture(masked(false, DocumentMask{{2, 1}}), 5, 5), "11000 11000 00100 00011 00011");
  EXPECT_EQ(picture(masked(true, DocumentMask{{2, 3}}), 5, 5), "10000 11000 00100 00110 00111");
}

TEST(MayLook, ADilatedMaskCountsFromTheQueryItself) {
  EXPECT_EQ(picture(masked(false, DilatedMask{2}), 4, 4), "1010 0101 1010 0101");
  EXPECT_EQ(picture(masked(true, DilatedMask{2}), 1, 4), "0101");
}

TEST(MayLook, RowsAreReadByPosition) {
  const RowsMask rows{3, 3, {true, false, true, false, true, false, true, true, false}, std::nullopt, ""};
  EXPECT_EQ(picture(masked(false, rows), 3, 3), "101 010 110");
  EXPECT_EQ(picture(masked(true, rows), 3, 3), "100 010 110");  // no mask switches causal off
  EXPECT_EQ(picture(masked(true, rows), 1, 2), "01");           // the second of two tokens
  EXPECT_EQ(picture(masked(false, rows), 1, 3), "101");         // the first query of a memory's keys
  EXPECT_THROW(picture(masked(false, rows), 3, 4), ShapeError);
}

TEST(MayLook, MasksAreCombinedByAnd) {
  AttentionConfig config = masked(true, DilatedMask{2});
  config.window = 3;
  EXPECT_EQ(picture(config, 5, 5), "10000 01000 10100 01010 00101");
}

// ---- the tensor ----

at::Tensor bits(const std::vector<std::int64_t>& values, at::IntArrayRef sizes) {
  return at::tensor(values, at::kLong).view(sizes).to(at::kBool);
}

TEST(DeclaredMask, HasOneItemWithoutPadding) {
  const at::Tensor mask = declared_mask(layer(true), 2, 4, {}, at::kCPU);
  EXPECT_TRUE(mask.equal(bits({1, 1, 1, 0, 1, 1, 1, 1}, {1, 1, 2, 4})));
}

TEST(DeclaredMask, PaddingHidesKeysOfItsOwnItemAndLeavesCausalOn) {
  const at::Tensor real_keys = bits({1, 1, 1, 0, 0, 1, 1, 1}, {2, 4});
  const at::Tensor mask = declared_mask(layer(true), 4, 4, real_keys, at::kCPU);
  EXPECT_TRUE(mask[0].equal(bits({1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0}, {1, 4, 4})));
  EXPECT_TRUE(mask[1].equal(bits({0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1}, {1, 4, 4})));
}

}  // namespace
}  // namespace attn
