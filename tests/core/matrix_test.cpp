#include "core/matrix.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace attn {
namespace {

TEST(Matrix, IsStoredRowAfterRow) {
  const Matrix matrix{2, 3, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(matrix.at(0, 2), 3);
  EXPECT_EQ(matrix.at(1, 0), 4);
  EXPECT_EQ(matrix.at(1, 2), 6);
}

TEST(Matrix, CanBeWritten) {
  Matrix matrix{2, 2, {0, 0, 0, 0}};
  matrix.at(1, 0) = 7;
  EXPECT_EQ(matrix.values, (std::vector<double>{0, 0, 7, 0}));
}

TEST(Errors, AreCaughtAsOneFamilyAndKeepTheirText) {
  EXPECT_THROW(throw ConfigError("x"), Error);
  EXPECT_THROW(throw ShapeError("x"), Error);
  EXPECT_THROW(throw IoError("x"), Error);
  EXPECT_THROW(throw ResourceError("x"), Error);
  EXPECT_STREQ(IoError("file: what").what(), "file: what");
}

}  // namespace
}  // namespace attn
