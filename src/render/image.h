// A picture in memory. Drawn by heatmap.h, encoded by png.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attn {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// The largest width and height that we draw and encode: viewers still open it, and its bytes fit the encoder's int.
inline constexpr std::int64_t kMaxImageSide = 16384;

/// Pixels by row from the top left corner.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<Rgb> pixels;  ///< width * height.

  Image() = default;
  Image(std::int64_t width_, std::int64_t height_, Rgb fill);

  Rgb& at(std::int64_t x, std::int64_t y) { return pixels[static_cast<std::size_t>(y * width + x)]; }
  Rgb at(std::int64_t x, std::int64_t y) const { return pixels[static_cast<std::size_t>(y * width + x)]; }

  /// Fills the part of the rectangle that lies inside the picture.
  void fill_rectangle(std::int64_t x, std::int64_t y, std::int64_t rect_width, std::int64_t rect_height, Rgb color);
};

}  // namespace attn
