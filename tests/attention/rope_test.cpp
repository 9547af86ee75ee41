#include "attention/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;
using test::tensor_of;

RopeConfig rope_of(RopeStyle style, double theta = 10000.0) {
  RopeConfig rope;
  rope.style = style;
  rope.theta = theta;
  return rope;
}

const std::array kStyles{RopeStyle::kHalf, RopeStyle::kAdjacent};

/// x (..., T, d_k) turned from position `first` on, as a query.
at::Tensor turned(const at::Tensor& x, const RopeConfig& rope, std::int64_t first = 0) {
  const RopeTables tables = rope_tables(rope, x.size(-1), first, x.size(-2), x.options());
  return apply_rope(x, x, tables.cos, tables.sin, rope.style).q;
}

// The case of huggingface/transformers #25199: d_k = 4, position 1, both ways to pair channels.
TEST(Rope, TurnsNeighboursOrHalves) {
  const at::Tensor x = tensor_of({1, 4}, {1, 2, 3, 4});
  EXPECT_LE(max_difference(turned(x, rope_of(RopeStyle::kAdjacent), 1),
                           tensor_of({1, 4}, {-1.14264, 1.92208, 2.95985, 4.0298})),
            1e-5);
  EXPECT_LE(
      max_difference(turned(x, rope_of(RopeStyle::kHalf), 1), tensor_of({1, 4}, {-1.98411, 1.9599, 2.46238, 4.0198})),
      1e-5);
}

TEST(Rope, PositionZeroIsLeftAsItIs) {
  const at::Tensor x = random_tensor({1, 1, 8}, 1);
  for (const RopeStyle style : kStyles) EXPECT_TRUE(identical(turned(x, rope_of(style)), x));
}

TEST(Rope, KeepsTheLengthOfEveryVector) {
  const at::Tensor x = random_tensor({2, 3, 50, 8}, 1);
  for (const RopeStyle style : kStyles) {
    EXPECT_LE(max_difference(turned(x, rope_of(style), 1000).norm(2, -1), x.norm(2, -1)), 1e-13);
  }
}

TEST(Rope, ProductsDependOnTheDistanceOnly) {
  const at::Tensor q = random_tensor({1, 8}, 1), k = random_tensor({1, 8}, 2);
  for (const RopeStyle style : kStyles) {
    const auto product = [&](std::int64_t i, std::int64_t j) {
      return (turned(q, rope_of(style), i) * turned(k, rope_of(style), j)).sum().item<double>();
    };
    EXPECT_NEAR(product(7, 3), product(1007, 1003), 1e-11);
    EXPECT_NEAR(product(3, 7), product(103, 107), 1e-12);
    EXPECT_GT(std::abs(product(7, 3) - product(7, 4)), 1e-3);
    EXPECT_GT(std::abs(product(7, 3) - product(3, 7)), 1e-3);  // not the same on both sides
  }
}

// lyogavin/airllm PR #369: another base.
TEST(Rope, TheBaseDecidesTheFrequencies) {
  const auto second = [](double theta) {
    return rope_frequencies(rope_of(RopeStyle::kHalf, theta), 4)[1].item<double>();
  };
  EXPECT_NEAR(second(10000.0), 0.01, 1e-15);
  EXPECT_NEAR(second(500000.0), 0.0014142135623731, 1e-15);
  EXPECT_NEAR(std::cos(1000 * second(10000.0)), -0.8391, 1e-4);
  EXPECT_NEAR(std::cos(1000 * second(500000.0)), 0.1559, 1e-4);
}

// huggingface/candle PR #3520: in bfloat16 positions 256 and 257 are one.
TEST(Rope, TablesTellNeighboursApartInEveryDtype) {
  for (const at::ScalarType dtype : test::kAllDtypes) {
    const RopeTables tables = rope_tables(rope_of(RopeStyle::kHalf), 4, 256, 2, dtype);
    EXPECT_NE(tables.cos.scalar_type(), at::kBFloat16);
    EXPECT_NE(tables.cos.scalar_type(), at::kHalf);
    EXPECT_NEAR(tables.cos[0][0].item<double>(), -0.0398, 1e-4) << dtype;
    EXPECT_NEAR(tables.cos[1][0].item<double>(), 0.8193, 1e-4) << dtype;
  }
}

// Beyond 2^24 not even float32 can hold the position.
TEST(Rope, PositionsBeyondFloat32AreExact) {
  const std::int64_t far = (std::int64_t{1} << 24) + 1;
  const RopeTables tables = rope_tables(rope_of(RopeStyle::kHalf), 4, far, 1, at::kFloat);
  EXPECT_NEAR(tables.cos[0][0].item<double>(), std::cos(static_cast<double>(far)), 1e-7);
}

TEST(Rope, TurnsInFloat32AndGivesTheDtypeBack) {
  const at::Tensor x = random_tensor({3, 8}, 1);
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const at::Tensor narrow = x.to(dtype);
    const at::Tensor actual = turned(narrow, rope_of(RopeStyle::kHalf), 500);
    EXPECT_EQ(actual.scalar_type(), dtype);
    EXPECT_TRUE(identical(actual, turned(narrow.to(at::kFloat), rope_of(RopeStyle::kHalf), 500).to(dtype)));
  }
}

// --- scaling ---

RopeConfig scaled(RopeScalingKind kind, double factor, std::int64_t original = 64) {
  RopeConfig rope = rope_of(RopeStyle::kHalf);
  rope.scaling.kind = kind;
  rope.scaling.factor = factor;
  rope.scaling.original_max_seq_len = original;
  return rope;
}

TEST(RopeScaling, LinearDividesEveryFrequency) {
  EXPECT_LE(max_difference(rope_frequencies(scaled(RopeScalingKind::kLinear, 4.0), 16),
                           rope_frequencies(rope_of(RopeStyle::kHalf), 16) / 4.0),
            1e-16);
}

TEST(RopeScaling, ByOneChangesNothing) {
  const at::Tensor plain = rope_frequencies(rope_of(RopeStyle::kHalf), 16);
  for (const RopeScalingKind kind : {RopeScalingKind::kLinear, RopeScalingKind::kLlama3, RopeScalingKind::kYarn}) {
    EXPECT_LE(max_difference(rope_frequencies(scaled(kind, 1.0), 16), plain), 1e-15) << to_string(kind);
  }
}

// Wavelengths of the 8 pairs: 6.3 times 1, 3.2, 10, 32 ... In 64 positions the first turns 10 times, the second 3.2
// times, the third once, the others less.
TEST(RopeScaling, Llama3KeepsFastPairsAndDividesSlowOnes) {
  const at::Tensor plain = rope_frequencies(rope_of(RopeStyle::kHalf), 16);
  const at::Tensor ratio = rope_frequencies(scaled(RopeScalingKind::kLlama3, 8.0), 16) / plain;
  EXPECT_NEAR(ratio[0].item<double>(), 1.0, 1e-12);  // 10.2 turns, more than 4
  const double turns = 64.0 * plain[1].item<double>() / (2.0 * 3.14159265358979323846);
  const double kept = (turns - 1.0) / 3.0;  // between 1 and 4 turns: blended
  EXPECT_NEAR(ratio[1].item<double>(), kept + (1.0 - kept) / 8.0, 1e-12);
  for (std::int64_t pair = 3; pair < 8; ++pair) EXPECT_NEAR(ratio[pair].item<double>(), 1.0 / 8.0, 1e-12) << pair;
}

TEST(RopeScaling, YarnRampsOverThePairsAndScalesTheTables) {
  const RopeConfig rope = scaled(RopeScalingKind::kYarn, 4.0, 4096);
  const at::Tensor ratio = rope_frequencies(rope, 64) / rope_frequencies(rope_of(RopeStyle::kHalf), 64);
  EXPECT_NEAR(ratio[0].item<double>(), 1.0, 1e-12);
  EXPECT_NEAR(ratio[31].item<double>(), 0.25, 1e-12);
  // Pairs that turn 32 times and once in 4096 positions: 10.4 and 22.5, so 10 and 23.
  EXPECT_NEAR(ratio[10].item<double>(), 1.0, 1e-12);
  EXPECT_LT(ratio[11].item<double>(), 1.0);
  EXPECT_GT(ratio[22].item<double>(), 0.25);
  EXPECT_NEAR(ratio[23].item<double>(), 0.25, 1e-12);
  const RopeTables tables = rope_tables(rope, 64, 0, 1, at::kDouble);
  EXPECT_NEAR(tables.cos[0][0].item<double>(), 0.1 * std::log(4.0) + 1.0, 1e-15);
  RopeConfig given = rope;
  given.scaling.attention_factor = 0.5;
  EXPECT_NEAR(rope_tables(given, 64, 0, 1, at::kDouble).cos[0][0].item<double>(), 0.5, 1e-15);
}

// --- what is refused ---

template <typename Work>
std::string error_text(Work work) {
  try {
    work();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Rope, RefusesAnOddWidth) {
  EXPECT_EQ(error_text([] { rope_frequencies(rope_of(RopeStyle::kHalf), 9); }), "rope: expected an even d_k, got 9");
}

TEST(Rope, RefusesTablesOfAnotherLengthOrWidth) {
  const RopeTables tables = rope_tables(rope_of(RopeStyle::kHalf), 8, 0, 3, at::kDouble);
  const at::Tensor q = at::zeros({2, 3, 8}, at::kDouble), longer = at::zeros({2, 4, 8}, at::kDouble);
  EXPECT_EQ(error_text([&] { apply_rope(q, longer, tables.cos, tables.sin, RopeStyle::kHalf); }),
            "k: expected shape (-1, 3, 8) (-1 is any), got (2, 4, 8)");
  EXPECT_EQ(error_text([&] { apply_rope(q.narrow(-1, 0, 6), q, tables.cos, tables.sin, RopeStyle::kHalf); }),
            "q: expected shape (-1, 3, 8) (-1 is any), got (2, 3, 6)");
  EXPECT_EQ(error_text([&] { apply_rope(q, q, tables.cos, tables.sin.narrow(0, 0, 2), RopeStyle::kHalf); }),
            "sin: expected shape (3, 4), got (2, 4)");
}

}  // namespace
}  // namespace attn
