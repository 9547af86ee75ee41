#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/text.h"

namespace attn {
namespace {

// Written for the tests alone: RFC 3629, section 3.
std::string encoded(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | (c >> 6)), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) return {byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

bool is_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

TEST(Utf8, EveryCodePointIsReadAsItself) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (is_surrogate(c)) continue;
    const std::string text = encoded(c);
    ASSERT_EQ(find_invalid_utf8(text), std::nullopt) << static_cast<std::uint32_t>(c);
    ASSERT_EQ(code_points(text), std::vector<char32_t>{c}) << static_cast<std::uint32_t>(c);
  }
}

TEST(Utf8, SurrogatesAreInvalid) {
  for (char32_t c = 0xD800; c <= 0xDFFF; ++c) ASSERT_EQ(find_invalid_utf8(encoded(c)), 0u);
}

TEST(Utf8, NothingIsValidAboveTheLastCodePoint) {
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xf5\x80\x80\x80"), 0u);
}

TEST(Utf8, OverlongFormsAreInvalid) {
  EXPECT_EQ(find_invalid_utf8("\xc0\xaf"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xe0\x9f\xbf"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xf0\x8f\xbf\xbf"), 0u);
}

TEST(Utf8, TheOffsetIsThatOfTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("abc\xff"), 3u);
  EXPECT_EQ(find_invalid_utf8("\u00e9\x80"), 2u);
  EXPECT_EQ(find_invalid_utf8("ab\xe6\x97"), 2u);  // cut off inside a character
}

TEST(Utf8, AnInvalidByteBecomesTheReplacementCharacter) {
  EXPECT_EQ(code_points("a\xff\u00e9"), (std::vector<char32_t>{'a', 0xFFFD, 0xE9}));
}

RC_GTEST_PROP(Utf8, ReadsBackAnyTextOfValidCharacters, ()) {
  const auto points = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::suchThat(
      rc::gen::inRange<std::uint32_t>(0, 0x110000), [](std::uint32_t c) { return !is_surrogate(c); }));
  const std::vector<char32_t> expected(points.begin(), points.end());
  std::string text;
  for (const char32_t c : expected) text += encoded(c);
  RC_ASSERT(!find_invalid_utf8(text));
  RC_ASSERT(code_points(text) == expected);
}

TEST(DisplayWidth, IsOneForLettersOfMostScripts) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\u00e9\u0436\u03b1\u05d0"), 4u);
  EXPECT_EQ(display_width(""), 0u);
}

TEST(DisplayWidth, IsZeroForMarksDrawnOnTheirNeighbour) {
  EXPECT_EQ(display_width("e\u0301"), 1u);             // combining acute accent
  EXPECT_EQ(display_width("a\u200bb"), 2u);            // zero width space
  EXPECT_EQ(display_width("\u0915\u094d"), 1u);        // Devanagari ka with virama
  EXPECT_EQ(display_width("\u2764\ufe0f"), 1u);        // variation selector
  EXPECT_EQ(display_width("\u1112\u1161\u11ab"), 2u);  // one Hangul syllable from three letters
}

TEST(DisplayWidth, IsTwoForWideCharacters) {
  EXPECT_EQ(display_width("\u65e5\u672c\u8a9e"), 6u);
  EXPECT_EQ(display_width("\ud55c"), 2u);
  EXPECT_EQ(display_width("\uff21"), 2u);  // full-width A
  EXPECT_EQ(display_width("\U0001F600"), 2u);
  EXPECT_EQ(display_width("\U00020000"), 2u);
}

TEST(DisplayWidth, HalfWidthFormsTakeOneColumn) { EXPECT_EQ(display_width("\uff71"), 1u); }

}  // namespace
}  // namespace attn
