#include "render/font.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "render/glyphs.h"

namespace attn {
namespace {

constexpr Rgb kPaper{255, 255, 255};
constexpr Rgb kInk{0, 0, 0};

const Glyph& empty_box() { return glyph_of(U'\uFFFF'); }

std::size_t dark_pixels(const Image& image) {
  return static_cast<std::size_t>(std::count(image.pixels.begin(), image.pixels.end(), kInk));
}

TEST(Font, HasEveryPrintableAsciiCharacterWithItsOwnShape) {
  std::map<Glyph, char32_t> seen;
  for (char32_t c = U' '; c <= U'~'; ++c) {
    EXPECT_TRUE(has_glyph(c)) << static_cast<char>(c);
    const auto [other, is_new] = seen.emplace(glyph_of(c), c);
    EXPECT_TRUE(is_new) << static_cast<char>(c) << " looks like " << static_cast<char>(other->second);
  }
}

TEST(Font, HasLatin1AndGreekLetters) {
  for (char32_t c = 0xA0; c <= 0xFF; ++c) EXPECT_TRUE(has_glyph(c)) << std::hex << static_cast<unsigned>(c);
  for (char32_t c = 0x391; c <= 0x3C9; ++c) {
    if (c != 0x3A2 && c != 0x3AA && c != 0x3AB && c != 0x3B0) {
      EXPECT_TRUE(has_glyph(c)) << std::hex << static_cast<unsigned>(c);
    }
  }
}

TEST(Font, HasTheMarksOfTokenizersAndPictures) {
  for (const char32_t c : std::u32string_view(U"ĠĊ▁␣…↓→")) EXPECT_TRUE(has_glyph(c)) << static_cast<unsigned>(c);
}

TEST(Font, LeavesOneColumnFreeBetweenLetters) {
  for (char32_t c = U' '; c <= 0x3C9; ++c) {
    for (const std::uint8_t row : glyph_of(c)) EXPECT_LT(row, 1 << (kGlyphWidth - 1));
  }
}

TEST(Font, PutsTheAccentOverAnUnchangedLetter) {
  const Glyph& plain = glyph_of(U'e');
  const Glyph& accented = glyph_of(U'é');
  EXPECT_NE(plain, accented);
  for (std::size_t row = 0; row < plain.size(); ++row) EXPECT_EQ(plain[row] & accented[row], plain[row]) << row;
  EXPECT_TRUE(std::equal(plain.begin() + 5, plain.end(), accented.begin() + 5));
}

TEST(Font, PutsTheAccentOneRowAboveSmallAndCapitalLettersAlike) {
  const auto ink_begins = [](char32_t character) {
    const Glyph& glyph = glyph_of(character);
    return std::find_if(glyph.begin(), glyph.end(), [](std::uint8_t row) { return row != 0; }) - glyph.begin();
  };
  EXPECT_EQ(ink_begins(U'E') - ink_begins(U'É'), kAccentRows);
  EXPECT_EQ(ink_begins(U'e') - ink_begins(U'é'), kAccentRows);
  EXPECT_EQ(ink_begins(U'ç'), ink_begins(U'c'));
}

TEST(Font, DrawsAnEmptyBoxForAnUnknownCharacter) {
  EXPECT_FALSE(has_glyph(U'漢'));
  EXPECT_EQ(glyph_of(U'漢'), empty_box());
  EXPECT_NE(glyph_of(U' '), empty_box());
}

TEST(DrawText, DrawsAnI) {
  Image image(kGlyphWidth, kGlyphHeight, kPaper);
  draw_text(image, 0, 0, "I", kInk);
  std::string seen;
  for (std::int64_t y = 0; y < kGlyphHeight; ++y) {
    for (std::int64_t x = 0; x < kGlyphWidth; ++x) seen += image.at(x, y) == kInk ? '#' : '.';
    seen += '\n';
  }
  EXPECT_EQ(seen,
            "......\n......\n......\n"
            ".###..\n..#...\n..#...\n..#...\n..#...\n..#...\n.###..\n"
            "......\n......\n");
}

TEST(DrawText, TakesOneBoxACharacterNotAByte) {
  EXPECT_EQ(text_width(""), 0);
  EXPECT_EQ(text_width("a"), 5);
  EXPECT_EQ(text_width("ab"), 11);
  EXPECT_EQ(text_width("é漢", 3), 33);
}

RC_GTEST_PROP(DrawText, CutsOffWhatLiesOutside, ()) {
  Image small(20, 20, kPaper);
  Image large(220, 220, kPaper);
  const auto x = *rc::gen::inRange<std::int64_t>(-90, 90);
  const auto y = *rc::gen::inRange<std::int64_t>(-90, 90);
  const auto zoom = *rc::gen::inRange<std::int64_t>(1, 4);
  draw_text(small, x, y, "Wg%", kInk, zoom);
  draw_text(large, x + 100, y + 100, "Wg%", kInk, zoom);
  for (std::int64_t row = 0; row < 20; ++row) {
    for (std::int64_t column = 0; column < 20; ++column) {
      RC_ASSERT(small.at(column, row) == large.at(column + 100, row + 100));
    }
  }
}

TEST(DrawText, ZoomMakesEveryPixelASquare) {
  Image once(30, 12, kPaper);
  Image thrice(90, 36, kPaper);
  draw_text(once, 0, 0, "Qu@y", kInk);
  draw_text(thrice, 0, 0, "Qu@y", kInk, 3);
  for (std::int64_t y = 0; y < 36; ++y) {
    for (std::int64_t x = 0; x < 90; ++x) ASSERT_EQ(thrice.at(x, y), once.at(x / 3, y / 3)) << x << ' ' << y;
  }
}

TEST(DrawTextUpwards, IsTheTextTurnedAQuarterToTheLeft) {
  Image flat(40, 24, kPaper);
  Image turned(24, 40, kPaper);
  draw_text(flat, 0, 0, "Lp7", kInk, 2);
  draw_text_upwards(turned, 0, 40, "Lp7", kInk, 2);
  EXPECT_GT(dark_pixels(flat), 50U);
  for (std::int64_t y = 0; y < 24; ++y) {
    for (std::int64_t x = 0; x < 40; ++x) ASSERT_EQ(turned.at(y, 39 - x), flat.at(x, y)) << x << ' ' << y;
  }
}

}  // namespace
}  // namespace attn
