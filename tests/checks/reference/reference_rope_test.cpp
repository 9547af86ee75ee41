// The judge's rotary position embedding and RMS norm: values worked out by hand, and each gradient against the other
// direction.
#include "checks/reference/reference_rope.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "checks/reference/reference_norm.h"
#include "config/config_file.h"
#include "files/safetensors.h"

namespace attn {
namespace {

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double limit) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t index = 0; index < actual.size(); ++index) {
    EXPECT_TRUE(std::abs(actual[index] - expected[index]) <= limit)
        << index << ": " << actual[index] << ", expected " << expected[index];
  }
}

RopeConfig rope_of(RopeStyle style, double theta = 10000.0) {
  RopeConfig rope;
  rope.style = style;
  rope.theta = theta;
  return rope;
}

TEST(ReferenceRope, TurnsTheKnownVectorAtPositionOne) {
  // The two rows that tell the styles apart: d_k 4, theta 10000, x = 1, 2, 3, 4.
  expect_near(reference_rope(rope_of(RopeStyle::kAdjacent), 4, {1, 2, 3, 4}, {1}), {-1.14264, 1.92208, 2.95985, 4.0298},
              5e-6);
  expect_near(reference_rope(rope_of(RopeStyle::kHalf), 4, {1, 2, 3, 4}, {1}), {-1.98411, 1.9599, 2.46238, 4.0198},
              5e-6);
}

TEST(ReferenceRope, LeavesPositionZeroAlone) {
  expect_near(reference_rope(rope_of(RopeStyle::kHalf), 4, {1, 2, 3, 4}, {0}), {1, 2, 3, 4}, 0.0);
}

TEST(ReferenceRope, TakesTheConfigsTheta) {
  expect_near(reference_rope_frequencies(rope_of(RopeStyle::kHalf), 4), {1.0, 0.01}, 1e-15);
  expect_near(reference_rope_frequencies(rope_of(RopeStyle::kHalf, 500000.0), 4), {1.0, 0.0014142135623730951}, 1e-15);
  const double at_1000 = reference_rope(rope_of(RopeStyle::kHalf, 500000.0), 4, {0, 1, 0, 0}, {1000})[1];
  EXPECT_NEAR(at_1000, 0.1559, 5e-5);  // its cosine
  EXPECT_NEAR(reference_rope(rope_of(RopeStyle::kHalf), 4, {0, 1, 0, 0}, {1000})[1], -0.8391, 5e-5);
}

TEST(ReferenceRope, TellsPosition257From256) {
  const RopeConfig rope = rope_of(RopeStyle::kHalf);
  EXPECT_NEAR(reference_rope(rope, 2, {1, 0}, {257})[0], 0.8193, 5e-5);
  EXPECT_NEAR(reference_rope(rope, 2, {1, 0}, {256})[0], -0.0398, 5e-5);
}

TEST(ReferenceRope, TurnsEachHeadByTheSamePositions) {
  const double right_angle = std::numbers::pi / 2;
  RopeConfig rope = rope_of(RopeStyle::kHalf);
  rope.scaling.kind = RopeScalingKind::kLinear;
  rope.scaling.factor = 1.0 / right_angle;  // a quarter turn a position
  // two heads of two tokens
  expect_near(reference_rope(rope, 2, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2}), {-2, 1, -3, -4, -6, 5, -7, -8}, 1e-14);
}

TEST(ReferenceRope, LinearScalingDividesEveryFrequency) {
  RopeConfig rope = rope_of(RopeStyle::kHalf);
  rope.scaling.kind = RopeScalingKind::kLinear;
  rope.scaling.factor = 4.0;
  expect_near(reference_rope_frequencies(rope, 4), {0.25, 0.0025}, 1e-15);
}

TEST(ReferenceRope, Llama3KeepsFastPairsDividesSlowOnesAndBlendsBetween) {
  // Wavelengths 2 pi * 1, 10, 100, 1000 against 400: 62.8 is between 400/8 and 400/2, 628 is longer than 200.
  RopeConfig rope = rope_of(RopeStyle::kHalf, 10000.0);
  rope.scaling.kind = RopeScalingKind::kLlama3;
  rope.scaling.factor = 2.0;
  rope.scaling.low_freq_factor = 2.0;
  rope.scaling.high_freq_factor = 8.0;
  rope.scaling.original_max_seq_len = 400;
  const double turns = 400.0 / (2 * std::numbers::pi * 10.0);  // 6.37, between 2 and 8
  const double kept = (turns - 2.0) / 6.0;
  expect_near(reference_rope_frequencies(rope, 8), {1.0, 0.1 * (kept + (1 - kept) / 2), 0.005, 0.0005}, 1e-15);
}

TEST(ReferenceRope, YarnKeepsFastPairsDividesSlowOnesAndTellsItsFactor) {
  RopeConfig rope = rope_of(RopeStyle::kHalf, 10000.0);
  rope.scaling.kind = RopeScalingKind::kYarn;
  rope.scaling.factor = 4.0;
  rope.scaling.original_max_seq_len = 1024;
  // d_k 8: the pair that turns 32 times is 4 log10(1024 / 64 pi) / 4 = 0.707, rounded down 0; the one that turns once
  // is 2.21, rounded up 3. Between them the share that is divided rises by a third a pair.
  expect_near(reference_rope_frequencies(rope, 8), {1.0, 0.1 * 0.75, 0.01 * 0.5, 0.00025}, 1e-15);
  EXPECT_NEAR(reference_rope_factor(rope), 0.1 * std::log(4.0) + 1.0, 1e-15);
  rope.scaling.attention_factor = 0.5;
  EXPECT_EQ(reference_rope_factor(rope), 0.5);
  expect_near(reference_rope(rope, 8, {2, 0, 0, 0, 0, 0, 0, 0}, {0}), {1, 0, 0, 0, 0, 0, 0, 0}, 1e-15);
  rope.scaling.attention_factor.reset();
  rope.scaling.factor = 1.0;
  EXPECT_EQ(reference_rope_factor(rope), 1.0);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t index = 0; index < a.size(); ++index) sum += a[index] * b[index];
  return sum;
}

TEST(ReferenceRope, ItsGradientIsItsTranspose) {
  RopeConfig rope = rope_of(RopeStyle::kAdjacent, 50.0);
  rope.scaling.kind = RopeScalingKind::kYarn;
  rope.scaling.factor = 3.0;
  rope.scaling.original_max_seq_len = 100;
  const std::vector<double> x{1, -2, 3, 0.5, 4, 1, -1, 2}, d{0.3, 1, -1, 2, 0, 1, 1, -3};
  EXPECT_NEAR(dot(reference_rope(rope, 4, x, {3, 11}), d), dot(x, reference_rope_backward(rope, 4, d, {3, 11})), 1e-12);
}

/// cos and sin of the `transformers` package, from what reference_rope() makes of the pair (1, 0).
TEST(ReferenceRope, AgreesWithTheModelsTables) {
  const SafetensorsFile file = SafetensorsFile::load("tests/data/rope_tables.safetensors");
  const auto numbers = [&](const std::string& name) {
    for (const SafetensorsEntry& entry : file.entries()) {
      if (entry.name != name) continue;
      std::vector<double> values(entry.bytes.size() / sizeof(double));
      std::copy(entry.bytes.begin(), entry.bytes.end(), reinterpret_cast<char*>(values.data()));
      return values;
    }
    throw std::runtime_error("no tensor " + name);
  };
  std::vector<std::int64_t> positions;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.name != "positions") continue;
    positions.resize(entry.bytes.size() / sizeof(std::int64_t));
    std::copy(entry.bytes.begin(), entry.bytes.end(), reinterpret_cast<char*>(positions.data()));
  }
  ASSERT_FALSE(positions.empty());
  for (const std::string name : {"plain", "linear", "llama3", "yarn", "yarn_by_hand"}) {
    SCOPED_TRACE(name);
    const AttentionConfig config = parse_config(file.metadata().at(name + ".config"), name, ".").attention;
    const std::vector<double> cos = numbers(name + ".cos"), sin = numbers(name + ".sin");
    const std::int64_t d_k = config.d_k();
    const std::size_t pairs = static_cast<std::size_t>(d_k / 2);
    ASSERT_EQ(cos.size(), positions.size() * pairs);
    for (std::size_t row = 0; row < positions.size(); ++row) {
      std::vector<double> ones(static_cast<std::size_t>(d_k), 0.0);
      for (std::size_t c = 0; c < pairs; ++c) {
        ones[static_cast<std::size_t>(
            reference_rope_pair(config.rope->style, static_cast<std::int64_t>(c), d_k).first)] = 1.0;
      }
      const std::vector<double> turned = reference_rope(*config.rope, d_k, ones, {positions[row]});
      // Frequencies are at most 1; one that is off by a rounding turns position p by p roundings.
      const double limit = 2.0 * static_cast<double>(positions[row] + 4) * std::numeric_limits<double>::epsilon();
      for (std::size_t c = 0; c < pairs; ++c) {
        const ReferencePair pair = reference_rope_pair(config.rope->style, static_cast<std::int64_t>(c), d_k);
        EXPECT_NEAR(turned[static_cast<std::size_t>(pair.first)], cos[row * pairs + c], limit) << positions[row];
        EXPECT_NEAR(turned[static_cast<std::size_t>(pair.second)], sin[row * pairs + c], limit) << positions[row];
      }
    }
  }
}

TEST(ReferenceNorm, DividesByTheRootOfTheMeanSquare) {
  expect_near(reference_norm({3, 4, 0, 0, 1, 1, 1, 1}, {1, 2, 3, 4}, 0.0), {1.2, 3.2, 0, 0, 1, 2, 3, 4}, 1e-15);
  expect_near(reference_norm({1, 1}, {1, 1}, 3.0), {0.5, 0.5}, 1e-15);
  expect_near(reference_norm({0, 0}, {1, 1}, 1e-6), {0, 0}, 0.0);
}

TEST(ReferenceNorm, ItsGradientsAreItsSlopes) {
  const std::vector<double> heads{0.4, -1.3, 2.2, 0.7, 0.1, -0.6}, weight{0.9, -1.1, 0.5}, d{1, -2, 0.5, 0.3, 2, -1};
  constexpr double kEps = 0.01, kStep = 1e-6;
  std::vector<double> d_weight(3, 0.0);
  const std::vector<double> d_heads = reference_norm_backward(heads, weight, kEps, d, d_weight);
  const auto slope = [&](std::vector<double> changed, std::size_t index, const auto& loss) {
    changed[index] += kStep;
    const double above = loss(changed);
    changed[index] -= 2 * kStep;
    return (above - loss(changed)) / (2 * kStep);
  };
  for (std::size_t index = 0; index < heads.size(); ++index) {
    EXPECT_NEAR(d_heads[index],
                slope(heads, index, [&](const auto& changed) { return dot(reference_norm(changed, weight, kEps), d); }),
                1e-8);
  }
  for (std::size_t index = 0; index < weight.size(); ++index) {
    EXPECT_NEAR(d_weight[index],
                slope(weight, index, [&](const auto& changed) { return dot(reference_norm(heads, changed, kEps), d); }),
                1e-8);
  }
}

}  // namespace
}  // namespace attn
