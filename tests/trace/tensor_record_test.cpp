#include "trace/tensor_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::tensor_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(TensorStats, AreThoseOfThePopulation) {
  const TensorStats stats = stats_of(tensor_of({2, 2}, {1, 2, 3, 6}));
  EXPECT_EQ(stats.min, 1.0);
  EXPECT_EQ(stats.max, 6.0);
  EXPECT_EQ(stats.mean, 3.0);
  EXPECT_NEAR(stats.std.value(), std::sqrt(14.0 / 4.0), 1e-15);
  EXPECT_EQ(stats.nan, 0);
  EXPECT_EQ(stats.inf, 0);
}

TEST(TensorStats, CountNaNAndInfinityAndLeaveThemOut) {
  const TensorStats stats = stats_of(tensor_of({6}, {-kInfinity, kNaN, -2, 4, kInfinity, kNaN}));
  EXPECT_EQ(stats.nan, 2);
  EXPECT_EQ(stats.inf, 2);
  EXPECT_EQ(stats.min, -2.0);
  EXPECT_EQ(stats.max, 4.0);
  EXPECT_EQ(stats.mean, 1.0);
  EXPECT_EQ(stats.std, 3.0);
}

TEST(TensorStats, AreAbsentWithoutAFiniteNumber) {
  const TensorStats stats = stats_of(tensor_of({2}, {kNaN, kInfinity}));
  EXPECT_FALSE(stats.min || stats.max || stats.mean || stats.std);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.inf, 1);
}

TEST(TensorStats, KeepTheSpreadOfNumbersFarFromZero) {
  const TensorStats stats = stats_of(tensor_of({2}, {1e9 + 1, 1e9 - 1}));
  EXPECT_EQ(stats.std, 1.0);
}

TEST(TensorStats, AgreeWithTheLibraryAcrossPieces) {
  const at::Tensor tensor = test::random_tensor({3, 200'000}, 1);  // more than two pieces of 2^18
  const TensorStats stats = stats_of(tensor);
  EXPECT_EQ(stats.min, tensor.min().item<double>());
  EXPECT_EQ(stats.max, tensor.max().item<double>());
  EXPECT_NEAR(stats.mean.value(), tensor.mean().item<double>(), 1e-13);
  EXPECT_NEAR(stats.std.value(), tensor.std(false).item<double>(), 1e-12);
}

TEST(TensorStats, AreTakenInFloat64WhateverTheDtype) {
  for (const at::ScalarType dtype : test::kAllDtypes) {
    const at::Tensor tensor = at::full({100'000}, 3.0, dtype);  // the sum is far beyond float16
    EXPECT_EQ(stats_of(tensor).mean, 3.0) << dtype;
    EXPECT_EQ(stats_of(tensor).std, 0.0) << dtype;
  }
  EXPECT_EQ(stats_of(at::arange(5)).max, 4.0);  // token ids
}

TEST(Describe, GivesLayoutAndBytesOfTheTensorItself) {
  const at::Tensor strided = tensor_of({2, 3}, {0, 1, 2, 3, 4, 5}).to(at::kHalf).t();
  const TraceStep step = describe(strided, 6);
  EXPECT_EQ(step.shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(step.strides, (std::vector<std::int64_t>{1, 3}));
  EXPECT_FALSE(step.contiguous);
  EXPECT_EQ(step.dtype, "float16");
  EXPECT_EQ(step.bytes, 12);
  EXPECT_EQ(step.values, (std::vector<double>{0, 3, 1, 4, 2, 5}));  // row by row as the tensor is read
}

TEST(Describe, KeepsNumbersOfSmallTensorsOnly) {
  EXPECT_EQ(describe(at::zeros({2, 3}), 6).values.size(), 6U);
  EXPECT_TRUE(describe(at::zeros({2, 3}), 5).values.empty());
  EXPECT_TRUE(describe(at::zeros({2, 3}), 0).values.empty());
}

TEST(DtypeName, SpeaksTheConfigsWords) {
  EXPECT_EQ(dtype_name(at::kFloat), to_string(Dtype::kFloat32));
  EXPECT_EQ(dtype_name(at::kDouble), to_string(Dtype::kFloat64));
  EXPECT_EQ(dtype_name(at::kBFloat16), to_string(Dtype::kBFloat16));
  EXPECT_EQ(dtype_name(at::kHalf), to_string(Dtype::kFloat16));
  EXPECT_EQ(dtype_name(at::kLong), "int64");
  EXPECT_EQ(dtype_name(at::kBool), "bool");
}

}  // namespace
}  // namespace attn
