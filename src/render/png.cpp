#include "render/png.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>

#include "core/error.h"

namespace {

// Stands in for stb's own deflate, whose files are four times as large. stb frees the result with free().
unsigned char* compress_with_libdeflate(unsigned char* data, int length, int* compressed_length, int level) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  if (!compressor) return nullptr;
  const auto size = static_cast<std::size_t>(length);
  const std::size_t bound = libdeflate_zlib_compress_bound(compressor.get(), size);
  auto* compressed = static_cast<unsigned char*>(std::malloc(bound));
  if (compressed == nullptr) return nullptr;
  *compressed_length = static_cast<int>(libdeflate_zlib_compress(compressor.get(), data, size, compressed, bound));
  return compressed;
}

}  // namespace

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STBIW_ZLIB_COMPRESS compress_with_libdeflate
#include <stb/stb_image_write.h>

namespace attn {
namespace {

constexpr int kChannels = 3;
constexpr int kCompressionLevel = 6;
// "Up": a row of pixels is mostly the one above it. As small as trying every filter for every row, at a third of the
// time.
constexpr int kUpFilter = 2;
static_assert(sizeof(Rgb) == kChannels, "stb reads the pixels as bytes");
static_assert((kMaxImageSide * kChannels + 1) * kMaxImageSide < std::numeric_limits<int>::max() / 2,
              "stb counts the bytes of the picture, and what compressing may add to them, in an int");

void append_bytes(void* text, void* bytes, int size) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

}  // namespace

std::string encode_png(const Image& image) {
  const std::string size = std::to_string(image.width) + " x " + std::to_string(image.height);
  if (std::min(image.width, image.height) < 1 || std::max(image.width, image.height) > kMaxImageSide) {
    throw Error("picture: " + size + " pixels cannot be written as PNG, expected 1 to " +
                std::to_string(kMaxImageSide) + " a side");
  }
  stbi_write_png_compression_level = kCompressionLevel;
  stbi_write_force_png_filter = kUpFilter;
  std::string bytes;
  const int width = static_cast<int>(image.width);
  const int height = static_cast<int>(image.height);
  if (stbi_write_png_to_func(append_bytes, &bytes, width, height, kChannels, image.pixels.data(), width * kChannels) ==
      0) {
    throw ResourceError("picture: not enough memory to encode " + size + " pixels as PNG");
  }
  return bytes;
}

}  // namespace attn
