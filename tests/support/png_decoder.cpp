#include "support/png_decoder.h"

#include <png.h>

#include <stdexcept>
#include <string>

namespace attn {
namespace {

void require(bool condition, const png_image& png) {
  if (condition && png.warning_or_error == 0) return;
  throw std::runtime_error(std::string("PNG: ") + (png.message[0] == '\0' ? "not 8-bit RGB" : png.message));
}

}  // namespace

Image decode_png(std::string_view bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  require(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0, png);
  require(png.format == PNG_FORMAT_RGB, png);
  Image image(png.width, png.height, {});
  require(png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) != 0, png);
  return image;
}

}  // namespace attn
