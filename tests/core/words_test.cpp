#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/text.h"

namespace attn {
namespace {

const std::vector<std::string> kKeys = {"B", "T", "d_model", "H", "heads", "causal", "causality", "dropout"};

TEST(ClosestMatch, FindsASwapOfNeighbours) { EXPECT_EQ(closest_match("haeds", kKeys), "heads"); }

TEST(ClosestMatch, FindsAMissingAnAddedAndAChangedLetter) {
  EXPECT_EQ(closest_match("d_modl", kKeys), "d_model");
  EXPECT_EQ(closest_match("dropoutt", kKeys), "dropout");
  EXPECT_EQ(closest_match("cousal", kKeys), "causal");
}

TEST(ClosestMatch, CountsASwapOnce) {
  EXPECT_EQ(closest_match("cpu", {"pcu"}), "pcu");  // one third of three letters; two edits would be too many
}

TEST(ClosestMatch, TakesAThirdOfTheLettersAndNoMore) {
  EXPECT_EQ(closest_match("abcdxx", {"abcdef"}), "abcdef");
  EXPECT_EQ(closest_match("abcxxx", {"abcdef"}), std::nullopt);
  EXPECT_EQ(closest_match("abc", {"abxx"}), std::nullopt);
}

TEST(ClosestMatch, DoesNotGuessBetweenSingleLetters) { EXPECT_EQ(closest_match("X", kKeys), std::nullopt); }

TEST(ClosestMatch, DoesNotMindUpperAndLowerCase) {
  EXPECT_EQ(closest_match("D_MODEL", kKeys), "d_model");
  EXPECT_EQ(closest_match("t", kKeys), "T");
  EXPECT_EQ(closest_match("h", {"H", "h"}), "h");
}

TEST(ClosestMatch, TakesTheNearestOfSeveral) { EXPECT_EQ(closest_match("causalty", kKeys), "causality"); }

TEST(ClosestMatch, HasNoAnswerForNothing) {
  EXPECT_EQ(closest_match("", kKeys), std::nullopt);
  EXPECT_EQ(closest_match("word", {}), std::nullopt);
}

TEST(ClosestMatch, IsQuickOnAHugeWord) { EXPECT_EQ(closest_match(std::string(50'000'000, 'a'), kKeys), std::nullopt); }

RC_GTEST_PROP(ClosestMatch, FindsEveryChoiceItself, (const std::vector<std::string>& choices)) {
  for (const std::string& choice : choices) RC_ASSERT(closest_match(choice, choices) == choice);
}

TEST(UnknownWord, SuggestsTheNearestWord) {
  EXPECT_EQ(unknown_word("check", "casuality", kKeys), "unknown check \"casuality\"; did you mean \"causality\"?");
}

TEST(UnknownWord, ListsTheChoicesWhenNoneIsNear) {
  EXPECT_EQ(unknown_word("device", "tpu7", {"cpu", "cuda"}), "unknown device \"tpu7\"; known: cpu, cuda");
}

TEST(UnknownWord, CountsTheChoicesWhereThereAreMoreThanALineHolds) {
  const std::vector<std::string> many(31, "scale-none");
  EXPECT_EQ(unknown_word("fault", "xyzzy", many), "unknown fault \"xyzzy\"; none of the 31 is near it");
}

TEST(Join, PutsTheSeparatorBetweenWordsOnly) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a"}), "a");
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"a", "b"}, "|"), "a|b");
}

TEST(Quoted, EscapesWhatWouldEndTheQuotation) { EXPECT_EQ(in_quotes("a\"b\\c"), "\"a\\\"b\\\\c\""); }

TEST(Quoted, CutsAfterSoManyCharacters) {
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(in_quotes("abc", 3), "\"abc\"");
  EXPECT_EQ(in_quotes("h\u00e9\u00e9\u00e9", 2), "\"h\u00e9...\"");
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
}

TEST(Printable, EscapesWhatTurnsOrBreaksALine) {
  EXPECT_EQ(printable("a\u202eb"), "a\\u202eb");
  EXPECT_EQ(printable("a\u0085b\u2028"), "a\\u0085b\\u2028");
}

TEST(Printable, EscapesInvalidUtf8ByteByByte) { EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3"); }

TEST(Printable, LeavesLettersOfEveryScript) {
  EXPECT_EQ(printable("\u00e9 \u65e5 \U0001F600"), "\u00e9 \u65e5 \U0001F600");
}

RC_GTEST_PROP(Printable, IsValidAndHasNoControlCharacter, (const std::string& text)) {
  const std::string shown = printable(text);
  RC_ASSERT(!find_invalid_utf8(shown));
  for (const char32_t c : code_points(shown)) RC_ASSERT(c >= 0x20 && c != 0x7f);
  RC_ASSERT(printable(shown) == shown);
}

TEST(Padded, FillsUpToTheWidth) {
  EXPECT_EQ(padded("ab", 4), "ab  ");
  EXPECT_EQ(padded("ab", 4, true), "  ab");
  EXPECT_EQ(padded("abcd", 2), "abcd");
}

TEST(Padded, CountsColumnsNotBytes) {
  EXPECT_EQ(padded("\u00e9", 3), "\u00e9  ");
  EXPECT_EQ(padded("\u65e5", 3), "\u65e5 ");
}

TEST(Shortened, LeavesWhatFitsAndCutsTheRestWithDots) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "...");
  EXPECT_EQ(shortened("abcdefgh", 6), "abc...");
  EXPECT_EQ(shortened("äöüßäöüß", 6), "äöü...");
  EXPECT_EQ(shortened("a\nb", 60), "a\\nb");
  EXPECT_EQ(shortened("", 60), "");
}

TEST(JoinFirst, ListsSixteenAndDotsForTheOthers) {
  EXPECT_EQ(join_first(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(join_first(std::vector<std::int64_t>{}), "");
  EXPECT_EQ(join_first(std::vector<std::int64_t>(16, 7)), "7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7");
  EXPECT_EQ(join_first(std::vector<std::int64_t>(17, 7)), "7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, ...");
}

}  // namespace
}  // namespace attn
