// What the masks of a run come to in words: known answers by hand.
#include "config/mask_words.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/config_test_support.h"

namespace attn {
namespace {

using Lines = std::vector<std::string>;

/// One layer of T tokens in B items with more keys.
Lines words(std::int64_t B, std::int64_t T, const std::string& more = "") {
  return mask_words(parse(R"({"d_model": 4, "H": 2, "B": )" + std::to_string(B) + R"(, "T": )" + std::to_string(T) +
                          (more.empty() ? "" : ", " + more) + "}"));
}

bool has(const Lines& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST(MaskWords, SayWhatEachMaskIsAndHowManyKeysARowSees) {
  EXPECT_EQ(words(2, 4), (Lines{"mask: true keeps (the query may look); causal", "visible keys a row: 1, 2, 3, 4"}));
  EXPECT_EQ(words(2, 3, R"("causal": false)"),
            (Lines{"mask: none, every query sees every key", "visible keys a row: 3 in each of 3 rows"}));
}

/// BUG_CASES R49: W counts the query itself.
TEST(MaskWords, CountTheQueryItselfInAWindow) {
  EXPECT_EQ(words(1, 6, R"("window": 3)"),
            (Lines{"mask: true keeps (the query may look); causal AND window 3 (counts itself)",
                   "visible keys a row: 1, 2, 3, 3, 3, 3"}));
  EXPECT_EQ(words(1, 5, R"("window": 2, "causal": false)"),
            (Lines{"mask: true keeps (the query may look); window 2 (to each side, counts itself)",
                   "visible keys a row: 2, 3, 3, 3, 2"}));
  EXPECT_EQ(words(1, 3, R"("window": 3)").back(), "warning: window 3 hides nothing at T 3");
  EXPECT_EQ(words(1, 3, R"("window": 1)")[1], "visible keys a row: 1 in each of 3 rows");
}

/// BUG_CASES R07: padding does not end causality: rows 1, 2, 3, 3 and not 3, 3, 3, 3.
TEST(MaskWords, CombineCausalAndPaddingByAnd) {
  EXPECT_EQ(words(1, 4, R"("padding": "right", "lengths": [3])"),
            (Lines{"mask: true keeps (the query may look); causal AND padding right",
                   "item 0: visible keys a row: 1, 2, 3, 3"}));
  EXPECT_TRUE(
      has(words(1, 3, R"("mask": [[1, 1, 1], [1, 1, 1], [1, 1, 1]])"),
          "warning: the own mask opens 3 later keys that causal hides: both hold; causal false would show them"));
}

TEST(MaskWords, NameRowsWithoutAnyKey) {
  const Lines lines = words(2, 5, R"("padding": "left", "lengths": [5, 2], "window": 4)");
  EXPECT_EQ(lines[0], "mask: true keeps (the query may look); causal AND padding left AND window 4 (counts itself)");
  EXPECT_EQ(lines[1], "item 0: visible keys a row: 1, 2, 3, 4, 4");
  EXPECT_EQ(lines[2], "item 1: visible keys a row: 0, 0, 0, 1, 2");
  EXPECT_EQ(lines[3], "3 rows fully hidden (weights and context are 0): item 1, rows 0-2");
  EXPECT_EQ(lines.size(), 4U);  // padding that sees nothing is no slip
}

TEST(MaskWords, WarnOfRowsThatDoNotSeeThemselves) {
  const Lines lines = words(1, 4, R"("mask": [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])");
  EXPECT_EQ(lines, (Lines{"mask: true keeps (the query may look); causal AND own mask in rows",
                          "visible keys a row: 1, 1, 2, 0", "1 row fully hidden (weights and context are 0): row 3",
                          "warning: row 1 does not see itself", "warning: no row sees keys 1, 3"}));
}

TEST(MaskWords, KnowTheOtherMasks) {
  EXPECT_EQ(
      words(1, 4, R"("mask": {"kind": "prefix", "length": 2})"),
      (Lines{"mask: true keeps (the query may look); prefix 2 (they see each other, later ones see what is before "
             "them)",
             "visible keys a row: 2, 2, 3, 4"}));
  EXPECT_EQ(
      words(1, 5, R"("mask": {"kind": "document", "lengths": [2, 1]})"),
      (Lines{"mask: true keeps (the query may look); causal AND documents of 2, 1, and the 2 tokens after them as one "
             "more (each sees itself only)",
             "visible keys a row: 1, 2, 1, 1, 2"}));
  EXPECT_EQ(words(1, 5, R"("mask": {"kind": "dilated", "stride": 2})")[1], "visible keys a row: 1, 1, 2, 2, 3");
  EXPECT_EQ(words(1, 2, R"("mask": "bidirectional")"),
            (Lines{"mask: true keeps (the query may look); bidirectional", "visible keys a row: 2 in each of 2 rows"}));
  EXPECT_EQ(words(1, 2, R"("mask": {"kind": "prefix", "length": 2})").back(),
            "warning: prefix 2 is all of T 2: every token sees every other");
  EXPECT_EQ(words(1, 2, R"("mask": {"kind": "dilated", "stride": 1})").back(), "warning: stride 1 hides nothing");
}

TEST(MaskWords, WarnOfMasksThatHideNothingOrAllOthers) {
  EXPECT_EQ(words(1, 3, R"("mask": {"kind": "prefix", "length": 4})").back(),
            "warning: prefix 4 is more than T 3: every token sees every other");
  EXPECT_EQ(words(1, 3, R"("mask": {"kind": "document", "lengths": [3]})").back(),
            "warning: one document of all of T 3 hides nothing");
  EXPECT_EQ(words(1, 3, R"("mask": {"kind": "dilated", "stride": 3})"),
            (Lines{"mask: true keeps (the query may look); causal AND dilated (keys at distance 0, 3, 6, ...)",
                   "visible keys a row: 1 in each of 3 rows",
                   "warning: stride 3 is at least T 3: every token sees itself only"}));
}

TEST(MaskWords, AskWhetherAMaskIsInverted) {
  const std::string question =
      "warning: the own mask shows no token itself, nor any before it: is it inverted? true keeps";
  const std::string upper = R"("mask": [[0, 1, 1], [0, 0, 1], [0, 0, 0]])";
  EXPECT_TRUE(has(words(1, 3, upper), question));
  EXPECT_TRUE(has(words(1, 3, upper + R"(, "causal": false)"), question));
  EXPECT_FALSE(has(words(1, 3, R"("mask": [[1, 0, 0], [1, 1, 0], [1, 1, 1]])"), question));
  EXPECT_FALSE(has(words(1, 3, R"("mask": [[0, 1, 1], [1, 0, 1], [1, 1, 0]], "causal": false)"), question));
}

TEST(MaskWords, PutItemsTogetherThatAreAlikeAndCutTheRest) {
  const std::string padded = R"("causal": false, "padding": "right", "lengths": )";
  EXPECT_EQ(words(4, 3, padded + "[3, 2, 3, 3]"), (Lines{"mask: true keeps (the query may look); padding right",
                                                         "items 0, 2-3: visible keys a row: 3 in each of 3 rows",
                                                         "item 1: visible keys a row: 2 in each of 3 rows"}));
  const Lines many = words(11, 10, padded + "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9]");
  EXPECT_EQ(many.size(), 10U);
  EXPECT_EQ(many.back(), "... and 3 more items with other rows");
}

/// BUG_CASES R08: one query against four keys sits at the last of their positions.
TEST(MaskWords, SayWhereTheQueriesSitAmongMoreKeys) {
  EXPECT_EQ(alignment_words(1, 4), "bottom-right aligned: query 0 sits at position 3");
  EXPECT_EQ(alignment_words(2, 5), "bottom-right aligned: query 0 sits at position 3");
  EXPECT_EQ(alignment_words(4, 4), "");
  EXPECT_EQ(words(1, 4, R"("cache": {"prefill": 3, "steps": 1})")[1],
            "with the cache, call 1 has 1 query and 4 keys, bottom-right aligned: query 0 sits at position 3");
  EXPECT_EQ(words(1, 8, R"("cache": {"prefill": 2, "steps": 3, "chunk": 2})")[1],
            "with the cache, call 1 has 2 queries and 4 keys, bottom-right aligned: query 0 sits at position 2; each "
            "further call starts 2 later");
}

/// BUG_CASES R08 with a window: the cache has fewer keys than there were tokens.
TEST(MaskWords, CountOnlyTheKeysThatACacheKeepsForTheWindow) {
  const std::string cache = R"("cache": {"prefill": 6, "steps": 2, "chunk": 1}, "window": )";
  EXPECT_EQ(words(1, 8, cache + "4")[1],
            "with the cache, call 1 has 1 query and 4 keys, bottom-right aligned: query 0 sits at position 6, key 0 at "
            "3; each further call starts 1 later");
  EXPECT_EQ(words(1, 8, cache + "1")[1],
            "with the cache, call 1 has 1 query and 1 key, bottom-right aligned: query 0 sits at position 6, key 0 at "
            "6; each further call starts 1 later");
  EXPECT_EQ(words(1, 8, cache + "7")[1],
            "with the cache, call 1 has 1 query and 7 keys, bottom-right aligned: query 0 sits at position 6; each "
            "further call starts 1 later");
}

TEST(MaskWords, NameTheTokensAfterTheLastDocument) {
  const auto documents = [](const std::string& lengths) {
    return words(1, 8, R"("mask": {"kind": "document", "lengths": [)" + lengths + "]}")[0];
  };
  const std::string before = "mask: true keeps (the query may look); causal AND documents of ";
  EXPECT_EQ(documents("2, 1"), before + "2, 1, and the 5 tokens after them as one more (each sees itself only)");
  EXPECT_EQ(documents("7"), before + "7, and the 1 token after them as one more (each sees itself only)");
  EXPECT_EQ(documents("5, 3"), before + "5, 3 (each sees itself only)");
}

TEST(MaskWords, SayThatAMemoryIsAnotherSequence) {
  EXPECT_EQ(
      words(2, 2, R"("qkv": "separate", "memory": {"T_k": 3}, "padding": "right", "lengths": [3, 1])"),
      (Lines{"mask: true keeps (the query may look); padding right",
             "queries and keys are of two sequences, T_q 2, T_k 3: there is nothing to align",
             "item 0: visible keys a row: 3 in each of 2 rows", "item 1: visible keys a row: 1 in each of 2 rows"}));
}

TEST(MaskWords, CutLongListsAndLeaveVeryLongOnesOut) {
  EXPECT_EQ(words(1, 20)[1],
            "visible keys a row: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, ... (20 rows)");
  EXPECT_EQ(words(1, 5000).back(), "visible keys a row: not counted above 16,777,216 cells");
}

}  // namespace
}  // namespace attn
