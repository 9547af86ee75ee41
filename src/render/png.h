// Images to PNG bytes. The bytes are written by files/whole_file.h, which notices a full disk.
#pragma once

#include <string>

#include "render/image.h"

namespace attn {

/// 8-bit RGB. Throws Error for an empty image, or one too large for the encoder (its bytes must fit a 32-bit int).
std::string encode_png(const Image& image);

}  // namespace attn
