// A fixed 8 x 8 pixel font, enough for titles and token labels.
#pragma once

#include <cstdint>
#include <string_view>

#include "render/image.h"

namespace attn {

inline constexpr std::int64_t kGlyphSize = 8;

/// Draws UTF-8 text, one glyph a code point, the top left corner at (x, y); what lies outside is cut off.
/// A character without a glyph is drawn as an empty box.
void draw_text(Image& image, std::int64_t x, std::int64_t y, std::string_view text, Rgb color, std::int64_t zoom = 1);

/// The same, turned a quarter to the left: reads upwards; (x, y) is the bottom left corner of the first glyph's box.
void draw_text_upwards(Image& image, std::int64_t x, std::int64_t y, std::string_view text, Rgb color, std::int64_t zoom = 1);

/// Pixels that draw_text takes across.
std::int64_t text_width(std::string_view text, std::int64_t zoom = 1);

}  // namespace attn
