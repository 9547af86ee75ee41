#include "render/image.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attn {
namespace {

constexpr Rgb kWhite{255, 255, 255};
constexpr Rgb kBlue{0, 0, 255};

TEST(Image, IsFilledWithOneColourAtFirst) {
  const Image image(3, 2, kBlue);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.pixels, std::vector<Rgb>(6, kBlue));
}

RC_GTEST_PROP(Image, ARectangleChangesExactlyThePixelsInsideIt, ()) {
  const auto side = [] { return rc::gen::inRange<std::int64_t>(-6, 12); };
  Image image(*rc::gen::inRange<std::int64_t>(1, 8), *rc::gen::inRange<std::int64_t>(1, 8), kWhite);
  const std::int64_t x = *side(), y = *side(), width = *side(), height = *side();
  image.fill_rectangle(x, y, width, height, kBlue);
  for (std::int64_t row = 0; row < image.height; ++row) {
    for (std::int64_t column = 0; column < image.width; ++column) {
      const bool inside = column >= x && column < x + width && row >= y && row < y + height;
      RC_ASSERT(image.at(column, row) == (inside ? kBlue : kWhite));
    }
  }
}

}  // namespace
}  // namespace attn
