#include "render/colormap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The place of colour number `index`, in the middle of the values that it stands for.
double value_of(std::size_t index) { return (static_cast<double>(index) + 0.5) / static_cast<double>(kColorCount); }

// CIE luminance of an sRGB colour, 0 to 1.
double luminance(Rgb color) {
  const auto linear = [](std::uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

// The colours that viridis' authors and every plotting library agree on.
TEST(Viridis, HasTheColoursOfTheOriginal) {
  EXPECT_EQ(viridis(0.0), (Rgb{0x44, 0x01, 0x54}));
  EXPECT_EQ(viridis(0.25), (Rgb{0x3b, 0x52, 0x8b}));
  EXPECT_EQ(viridis(0.5), (Rgb{0x21, 0x91, 0x8c}));
  EXPECT_EQ(viridis(0.75), (Rgb{0x5e, 0xc9, 0x62}));
  EXPECT_EQ(viridis(1.0), (Rgb{0xfd, 0xe7, 0x25}));
}

TEST(Viridis, SplitsTheRangeIntoEqualSteps) {
  EXPECT_EQ(color_index(0.0), 0U);
  EXPECT_EQ(color_index(std::nextafter(1.0 / 256, 0.0)), 0U);
  EXPECT_EQ(color_index(1.0 / 256), 1U);
  EXPECT_EQ(color_index(1.0 / 3), 85U);
  EXPECT_EQ(color_index(0.5), 128U);
  EXPECT_EQ(color_index(std::nextafter(1.0, 0.0)), 255U);
  EXPECT_EQ(color_index(1.0), 255U);
}

TEST(Viridis, ClampsWhatLiesOutside) {
  for (const double low : {-1e-300, -0.5, -1e300, -kInfinity}) EXPECT_EQ(viridis(low), viridis(0.0)) << low;
  for (const double high : {1.5, 1e300, kInfinity}) EXPECT_EQ(viridis(high), viridis(1.0)) << high;
}

// Over two steps: neighbours may lose their difference in the rounding to 8 bits.
TEST(Viridis, GrowsLighterAllTheWay) {
  for (std::size_t i = 2; i < kColorCount; ++i) {
    EXPECT_GT(luminance(viridis(value_of(i))), luminance(viridis(value_of(i - 2)))) << i;
  }
}

TEST(Viridis, ShowsNanAsAnAlarm) { EXPECT_EQ(viridis(std::nan("")), kNanColor); }

TEST(Viridis, IsFarFromEveryColourThatIsNoValue) {
  for (const Rgb other : {kMaskedColor, kMaskedHatchColor, kNanColor, kInfinityColor}) {
    for (std::size_t i = 0; i < kColorCount; ++i) {
      const Rgb color = viridis(value_of(i));
      const int distance = std::abs(color.r - other.r) + std::abs(color.g - other.g) + std::abs(color.b - other.b);
      EXPECT_GE(distance, 100) << i;
    }
  }
}

}  // namespace
}  // namespace attn
