#include "render/png.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "support/png_decoder.h"

namespace attn {
namespace {

std::string error_text(const Image& image) {
  try {
    encode_png(image);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// An image that says it has this size; refused before a pixel is read.
Image claims_size(std::int64_t width, std::int64_t height) {
  Image image;
  image.width = width;
  image.height = height;
  return image;
}

RC_GTEST_PROP(Png, AnotherDecoderReadsEveryPixelBack, ()) {
  Image image(*rc::gen::inRange<std::int64_t>(1, 40), *rc::gen::inRange<std::int64_t>(1, 40), {});
  for (Rgb& pixel : image.pixels) {
    pixel = {*rc::gen::arbitrary<std::uint8_t>(), *rc::gen::arbitrary<std::uint8_t>(),
             *rc::gen::arbitrary<std::uint8_t>()};
  }
  const Image decoded = decode_png(encode_png(image));
  RC_ASSERT(decoded.width == image.width);
  RC_ASSERT(decoded.height == image.height);
  RC_ASSERT(decoded.pixels == image.pixels);
}

TEST(Png, TheSameImageGivesTheSameBytes) {
  Image image(37, 19, {1, 2, 3});
  image.fill_rectangle(4, 5, 6, 7, {200, 0, 9});
  EXPECT_EQ(encode_png(image), encode_png(image));
}

TEST(Png, ReadsBackTheWidestAndTheHighestPicture) {
  for (const auto& [width, height] : {std::pair{kMaxImageSide, std::int64_t{2}}, {std::int64_t{2}, kMaxImageSide}}) {
    Image image(width, height, {7, 8, 9});
    image.at(width - 1, height - 1) = {1, 2, 3};
    EXPECT_EQ(decode_png(encode_png(image)).pixels, image.pixels);
  }
}

TEST(Png, CompressesACellToFarLessThanItsPixels) {
  EXPECT_LT(encode_png(Image(1000, 1000, {68, 1, 84})).size(), 10000U);
}

TEST(Png, RefusesAnEmptyPicture) {
  const std::string expected = "picture: 0 x 5 pixels cannot be written as PNG, expected 1 to 16384 a side";
  EXPECT_EQ(error_text(claims_size(0, 5)), expected);
  EXPECT_NE(error_text(claims_size(5, 0)), "no error");
  EXPECT_NE(error_text(Image{}), "no error");
}

TEST(Png, RefusesSidesThatTheEncoderCannotCount) {
  EXPECT_EQ(error_text(claims_size(16385, 1)),
            "picture: 16385 x 1 pixels cannot be written as PNG, expected 1 to 16384 a side");
  EXPECT_NE(error_text(claims_size(1, 16385)), "no error");
  EXPECT_NE(error_text(claims_size(std::int64_t{1} << 31, std::int64_t{1} << 31)), "no error");
}

}  // namespace
}  // namespace attn
