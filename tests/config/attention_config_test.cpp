#include "config/attention_config.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"

namespace attn {
namespace {

std::string fault_of(const AttentionConfig& config) {
  const auto fault = find_fault(config);
  return fault ? fault->key + ": " + fault->text : "none";
}

TEST(AttentionConfig, DefaultsAreValid) { EXPECT_EQ(fault_of({}), "none"); }

TEST(AttentionConfig, WidthOfAHeadFollowsFromModelAndHeads) {
  AttentionConfig config;
  config.d_model = 96;
  config.H = 3;
  EXPECT_EQ(config.d_k(), 32);
  EXPECT_EQ(config.heads_width(), 96);
  config.given_d_k = 64;
  EXPECT_EQ(config.d_k(), 64);
  EXPECT_EQ(config.heads_width(), 192);
  EXPECT_DOUBLE_EQ(config.scale(), 0.125);
}

TEST(AttentionConfig, RefusesSizesThatAreNoSizes) {
  for (const std::int64_t wrong :
       {std::int64_t{0}, std::int64_t{-1}, kMaxSize + 1, std::numeric_limits<std::int64_t>::min()}) {
    const std::string expected = ": must be an integer from 1 to 2147483647, got " + std::to_string(wrong);
    AttentionConfig config;
    config.d_model = wrong;
    EXPECT_EQ(fault_of(config), "d_model" + expected);
    config = {};
    config.H = wrong;
    EXPECT_EQ(fault_of(config), "H" + expected);
    config = {};
    config.given_d_k = wrong;
    EXPECT_EQ(fault_of(config), "d_k" + expected);
    config = {};
    config.max_seq_len = wrong;
    EXPECT_EQ(fault_of(config), "max_seq_len" + expected);
  }
}

TEST(AttentionConfig, HeadsMustDivideTheModelUnlessTheirWidthIsGiven) {
  AttentionConfig config;
  config.H = 5;
  EXPECT_EQ(fault_of(config), "H: must divide d_model (64) unless d_k is given, got 5");
  config.given_d_k = 7;
  EXPECT_EQ(fault_of(config), "none");
}

TEST(AttentionConfig, SingleHeadHasOneHead) {
  AttentionConfig config;
  config.module = ModuleKind::kSingleHead;
  EXPECT_EQ(fault_of(config), "H: must be 1 for module single-head, got 4");
  config.H = 1;
  EXPECT_EQ(fault_of(config), "none");
}

TEST(AttentionConfig, ProjectionsMustNotBeWiderThanTheLargestSize) {
  AttentionConfig config;
  config.d_model = config.H = 1;
  config.given_d_k = kMaxSize / 3;
  EXPECT_EQ(fault_of(config), "none");
  config.given_d_k = kMaxSize / 3 + 1;
  EXPECT_EQ(
      fault_of(config),
      "d_k: 3 * H * d_k, the width of q, k and v together, must be at most 2147483647, got H = 1, d_k = 715827883");
  config.given_d_k.reset();
  config.d_model = kMaxSize;
  EXPECT_EQ(fault_of(config),
            "d_model: 3 * H * d_k, the width of q, k and v together, must be at most 2147483647, got H = 1, d_k = "
            "2147483647");
}

TEST(AttentionConfig, DropoutIsAProbabilityBelowOne) {
  AttentionConfig config;
  for (const double right : {0.0, 0.1, 0.999}) {
    config.dropout = right;
    EXPECT_EQ(fault_of(config), "none");
  }
  config.dropout = 1.5;
  EXPECT_EQ(fault_of(config), "dropout: must be a number of at least 0 and below 1, got 1.5");
  config.dropout = 1.0;
  EXPECT_EQ(fault_of(config), "dropout: must be a number of at least 0 and below 1, got 1");
  config.dropout = -0.1;
  EXPECT_EQ(find_fault(config)->key, "dropout");
  config.dropout = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(fault_of(config), "dropout: must be a number of at least 0 and below 1, got nan");
}

TEST(AttentionConfig, ValidateThrowsTheFault) {
  AttentionConfig config;
  validate(config);
  config.H = 5;
  try {
    validate(config);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "H: must divide d_model (64) unless d_k is given, got 5");
  }
}

// Whatever the numbers: a config is refused, or the products that code above forms fit 64 bits.
RC_GTEST_PROP(AttentionConfig, ValidSizesMultiplyWithoutOverflow, ()) {
  const auto any_size = rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(), rc::gen::inRange<std::int64_t>(-2, 100),
                                       rc::gen::inRange<std::int64_t>(kMaxSize - 3, kMaxSize + 3));
  AttentionConfig config;
  config.d_model = *any_size;
  config.H = *any_size;
  config.max_seq_len = *any_size;
  if (*rc::gen::arbitrary<bool>()) config.given_d_k = *any_size;
  if (find_fault(config)) return;
  std::int64_t product = 0;
  RC_ASSERT(!__builtin_mul_overflow(config.H, config.d_k(), &product));
  RC_ASSERT(!__builtin_mul_overflow(product, std::int64_t{3}, &product));
  RC_ASSERT(!__builtin_mul_overflow(product, config.d_model, &product));
  RC_ASSERT(!__builtin_mul_overflow(config.max_seq_len, config.max_seq_len, &product));
}

TEST(AttentionConfig, NormsOfQueriesAndKeysNeedTwoChannels) {
  AttentionConfig config;
  config.given_d_k = 1;
  EXPECT_EQ(fault_of(config), "none");
  config.qk_norm = true;
  EXPECT_EQ(fault_of(config),
            "qk_norm: needs a d_k of at least 2, as one channel alone is normed to its sign, got d_k 1");
  config.given_d_k = 2;
  EXPECT_EQ(fault_of(config), "none");
}

/// d_k 4: the last pair turns by theta^-0.5, here 2^n, a position.
TEST(AttentionConfig, RopeTurnsByNoAngleBeyondTwoToThe32) {
  AttentionConfig config;
  config.given_d_k = 4;
  config.max_seq_len = 1024;
  config.rope = RopeConfig{};
  config.rope->theta = std::pow(2.0, -44);
  EXPECT_EQ(fault_of(config), "none");
  config.rope->theta = std::pow(2.0, -46);
  EXPECT_EQ(fault_of(config),
            "rope/theta: makes an angle of 8.59e+09 at max_seq_len (1024), must be at most 2^32: of a larger one too "
            "few digits are left to turn by, got 1.4210854715202004e-14");
  config.rope->theta = 1e-320;
  EXPECT_EQ(fault_of(config).rfind("rope/theta: makes an angle of ", 0), 0U);
  config.given_d_k = 2;  // one pair, whose frequency is 1 with any theta
  EXPECT_EQ(fault_of(config), "none");
}

TEST(AttentionConfig, ScalingByASmallFactorTurnsByNoAngleBeyondTwoToThe32) {
  AttentionConfig config;
  config.max_seq_len = 1024;
  config.rope = RopeConfig{};
  for (const RopeScalingKind kind : {RopeScalingKind::kLinear, RopeScalingKind::kLlama3, RopeScalingKind::kYarn}) {
    SCOPED_TRACE(to_string(kind));
    config.rope->scaling.kind = kind;
    config.rope->scaling.factor = std::pow(2.0, -22);
    EXPECT_EQ(fault_of(config), "none");
    config.rope->scaling.factor = std::pow(2.0, -23);
    EXPECT_EQ(fault_of(config),
              "rope/scaling/factor: makes an angle of 8.59e+09 at max_seq_len (1024), must be at most 2^32: of a "
              "larger one too few digits are left to turn by, got 1.1920928955078125e-07");
  }
}

}  // namespace
}  // namespace attn
