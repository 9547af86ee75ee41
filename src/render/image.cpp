#include "render/image.h"

#include <algorithm>

namespace attn {

Image::Image(std::int64_t width_, std::int64_t height_, Rgb fill)
    : width(width_), height(height_), pixels(static_cast<std::size_t>(width_ * height_), fill) {}

void Image::fill_rectangle(std::int64_t x, std::int64_t y, std::int64_t rect_width, std::int64_t rect_height,
                           Rgb color) {
  const std::int64_t left = std::max<std::int64_t>(x, 0);
  const std::int64_t right = std::min(x + rect_width, width);
  const std::int64_t bottom = std::min(y + rect_height, height);
  if (left >= right) return;
  for (std::int64_t row = std::max<std::int64_t>(y, 0); row < bottom; ++row) {
    const auto first = pixels.begin() + static_cast<std::ptrdiff_t>(row * width);
    std::fill(first + static_cast<std::ptrdiff_t>(left), first + static_cast<std::ptrdiff_t>(right), color);
  }
}

}  // namespace attn
