#include "render/font.h"

#include <vector>

#include "core/text.h"
#include "render/glyphs.h"

namespace attn {
namespace {

// Calls paint(across, down) for each dark pixel of the text, counted at zoom 1 from the top left corner of its box.
template <typename Paint>
void for_each_pixel(std::string_view text, Paint paint) {
  std::int64_t left = 0;
  for (const char32_t character : code_points(text)) {
    const Glyph& glyph = glyph_of(character);
    for (std::int64_t row = 0; row < kGlyphHeight; ++row) {
      for (std::int64_t column = 0; column < kGlyphWidth; ++column) {
        if ((glyph[static_cast<std::size_t>(row)] >> column & 1) != 0) paint(left + column, row);
      }
    }
    left += kGlyphWidth;
  }
}

}  // namespace

void draw_text(Image& image, std::int64_t x, std::int64_t y, std::string_view text, Rgb color, std::int64_t zoom) {
  for_each_pixel(text, [&](std::int64_t across, std::int64_t down) {
    image.fill_rectangle(x + across * zoom, y + down * zoom, zoom, zoom, color);
  });
}

void draw_text_upwards(Image& image, std::int64_t x, std::int64_t y, std::string_view text, Rgb color,
                       std::int64_t zoom) {
  for_each_pixel(text, [&](std::int64_t across, std::int64_t down) {
    image.fill_rectangle(x + down * zoom, y - (across + 1) * zoom, zoom, zoom, color);
  });
}

std::int64_t text_width(std::string_view text, std::int64_t zoom) {
  const auto characters = static_cast<std::int64_t>(code_points(text).size());
  return characters == 0 ? 0 : (characters * kGlyphWidth - 1) * zoom;
}

}  // namespace attn
