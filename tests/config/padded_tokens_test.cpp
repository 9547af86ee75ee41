#include "config/padded_tokens.h"

#include <gtest/gtest.h>

namespace attn {
namespace {

TEST(PaddedTokens, AreFilledUpOnTheSideThatIsSaid) {
  const Tokens tokens{{{7, 8}, {9, 8, 7}}, {{"a", "b"}, {"c", "b", "a"}}, 10};
  const Tokens left = padded_to(tokens, 3, PaddingSide::kLeft);
  EXPECT_EQ(left.ids, (std::vector<std::vector<std::int64_t>>{{0, 7, 8}, {9, 8, 7}}));
  EXPECT_EQ(left.labels, (std::vector<std::vector<std::string>>{{"<pad>", "a", "b"}, {"c", "b", "a"}}));
  EXPECT_EQ(left.vocab_size, 10);
  const Tokens right = padded_to(tokens, 4, PaddingSide::kRight);
  EXPECT_EQ(right.ids, (std::vector<std::vector<std::int64_t>>{{7, 8, 0, 0}, {9, 8, 7, 0}}));
  EXPECT_EQ(right.labels[1].back(), "<pad>");
}

TEST(PaddedTokens, MayHaveNoLabels) {
  const Tokens filled = padded_to({{{5}}, {}, 0}, 2, PaddingSide::kLeft);
  EXPECT_EQ(filled.ids, (std::vector<std::vector<std::int64_t>>{{0, 5}}));
  EXPECT_TRUE(filled.labels.empty());
}

TEST(PaddedTokens, RefuseALengthBelowThatOfAnItem) {
  EXPECT_THROW(padded_to({{{5, 6}}, {}, 0}, 1, PaddingSide::kLeft), std::logic_error);
}

}  // namespace
}  // namespace attn
