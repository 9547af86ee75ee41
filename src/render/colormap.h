// Numbers to colours.
#pragma once

#include "render/image.h"

namespace attn {

/// viridis (van der Walt and Smith 2015, CC0): 0 is dark violet, 1 is yellow. Values are clamped to 0 ... 1.
Rgb viridis(double value);

/// Cells that hold no value because the query may not look there. Told apart from every viridis colour.
inline constexpr Rgb kMaskedColor{226, 226, 226};

/// NaN: an alarm that no one mistakes for a value.
inline constexpr Rgb kNanColor{255, 0, 0};

}  // namespace attn
