// The shapes of the font's characters, as bits. Used by font.cpp only.
#pragma once

#include <array>
#include <cstdint>

#include "render/font.h"

namespace attn {

/// Rows from the top; the lowest bit of a row is its leftmost pixel, of kGlyphWidth - 1.
using Glyph = std::array<std::uint8_t, static_cast<std::size_t>(kGlyphHeight)>;

/// The character's shape; an empty box where there is none.
const Glyph& glyph_of(char32_t character);

/// Whether the font has a shape for it.
bool has_glyph(char32_t character);

}  // namespace attn
