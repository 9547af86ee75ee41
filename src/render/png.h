// Images to PNG bytes. The bytes are written by files/whole_file.h, which notices a full disk.
#pragma once

#include <string>

#include "render/image.h"

namespace attn {

/// 8-bit RGB. The same image gives the same bytes. Throws Error for an image with no pixel or with a side over
/// kMaxImageSide, ResourceError when memory runs out.
std::string encode_png(const Image& image);

}  // namespace attn
