// Reads PNG by libpng, which shares no code with our encoder: the judge of every picture.
#pragma once

#include <string_view>

#include "render/image.h"

namespace attn {

/// The pixels of an 8-bit RGB file. Throws std::runtime_error for anything else, and for whatever libpng complains of.
Image decode_png(std::string_view bytes);

}  // namespace attn
