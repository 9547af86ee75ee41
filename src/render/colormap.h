// Numbers to colours.
#pragma once

#include <cstddef>

#include "render/image.h"

namespace attn {

/// How many colours viridis has.
inline constexpr std::size_t kColorCount = 256;

/// The colour's place for a value: 0 is 0, 1 is 255, between them equal steps of 1/256, so floor(256 * value).
/// Values outside 0 ... 1, infinities too, are clamped to the ends; NaN has no place and must not come here.
std::size_t color_index(double value);

/// viridis (van der Walt and Smith 2015, CC0): 0 is dark violet, 1 is yellow, and more is lighter (but for
/// the rounding of neighbours to 8 bits). Clamped as color_index() says; NaN is kNanColor.
Rgb viridis(double value);

/// Cells that hold no value because the query may not look there. Told apart from every viridis colour: it has
/// no light grey.
inline constexpr Rgb kMaskedColor{232, 232, 232};
/// Thin diagonal lines over masked cells that are large enough for them.
inline constexpr Rgb kMaskedHatchColor{206, 206, 206};

/// NaN: an alarm that no one mistakes for a value.
inline constexpr Rgb kNanColor{255, 0, 0};

/// An infinity where the query may look: the other alarm.
inline constexpr Rgb kInfinityColor{255, 0, 255};

}  // namespace attn
