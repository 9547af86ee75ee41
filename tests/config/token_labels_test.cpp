#include "config/token_labels.h"

#include <gtest/gtest.h>

namespace attn {
namespace {

using Labels = std::vector<std::vector<std::string>>;

TEST(TokenLabels, OneListServesEveryBatchItem) {
  EXPECT_EQ(parse_token_labels(R"(["a", "b"])", 2, 2), (Labels{{"a", "b"}, {"a", "b"}}));
}

TEST(TokenLabels, EachBatchItemMayHaveItsOwn) {
  EXPECT_EQ(parse_token_labels(R"([["a", "b"], ["c", "d"]])", 2, 2), (Labels{{"a", "b"}, {"c", "d"}}));
}

TEST(TokenLabels, AnythingElseIsNoLabels) {
  for (const char* text :
       {"", "[", "7", "{}", R"(["a"])", R"(["a", 1])", R"([["a", "b"]])", R"([["a", "b"], ["c"]])"}) {
    EXPECT_EQ(parse_token_labels(text, 2, 2), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace attn
