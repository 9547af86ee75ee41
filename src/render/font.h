// A small pixel font, enough for titles, numbers and token labels. Knows nothing of what the words mean.
// The shapes of the letters are in glyphs.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "render/image.h"

namespace attn {

/// Pixels of one character's box at zoom 1, the gap to the next character and line included. From the top: 3 rows for
/// accents, 7 for capitals, 2 for what hangs below the line.
inline constexpr std::int64_t kGlyphWidth = 6;
inline constexpr std::int64_t kGlyphHeight = 12;
inline constexpr std::int64_t kAccentRows = 3;
inline constexpr std::int64_t kCapitalRows = 7;

/// Draws UTF-8 text, one glyph a code point, the top left corner at (x, y); what lies outside the picture is cut off.
/// A character without a glyph is drawn as an empty box.
void draw_text(Image& image, std::int64_t x, std::int64_t y, std::string_view text, Rgb color, std::int64_t zoom = 1);

/// The same, turned a quarter to the left: reads upwards. (x, y) is the bottom left corner of the text's box as it
/// stands there, the last row of pixels being y - 1.
void draw_text_upwards(Image& image, std::int64_t x, std::int64_t y, std::string_view text, Rgb color,
                       std::int64_t zoom = 1);

/// Pixels that draw_text takes across, without the gap after the last character; 0 for no text.
std::int64_t text_width(std::string_view text, std::int64_t zoom = 1);

}  // namespace attn
