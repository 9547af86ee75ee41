#include "experiment/random_input.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attn {
namespace {

TEST(RandomNormal, IsTheSameOnEveryPlatform) {
  // First draws of seed 0, worked out with an independent implementation in Python:
  // splitmix64 as in its paper, Box-Muller with math.log, math.cos and math.sin, rounded to float32 with struct.pack.
  const at::Tensor draws = random_normal({4}, 0, RandomStream::kInput);
  const std::vector<double> expected = {1.650551676750183, -2.4857215881347656, -0.6718655228614807,
                                        -0.9442887306213379};
  for (std::int64_t index = 0; index < 4; ++index) {
    EXPECT_EQ(draws[index].item<double>(), expected[static_cast<std::size_t>(index)]) << index;
  }
}

TEST(RandomNormal, IsExactInFloat32) {
  const at::Tensor draws = random_normal({1001}, 7, RandomStream::kInput);
  EXPECT_TRUE(at::equal(draws, draws.to(at::kFloat).to(at::kDouble)));
}

TEST(RandomNormal, HasMeanZeroAndVarianceOne) {
  const at::Tensor draws = random_normal({100000}, 3, RandomStream::kChecks);
  // Six standard errors of each estimate: 6 / sqrt(n) and 6 * sqrt(2 / n).
  EXPECT_NEAR(draws.mean().item<double>(), 0.0, 0.019);
  EXPECT_NEAR(draws.var().item<double>(), 1.0, 0.027);
}

TEST(RandomNormal, SeedsAndStreamsDiffer) {
  const at::Tensor draws = random_normal({64}, 1, RandomStream::kInput);
  EXPECT_TRUE(at::equal(draws, random_normal({64}, 1, RandomStream::kInput)));
  EXPECT_FALSE(at::equal(draws, random_normal({64}, 2, RandomStream::kInput)));
  EXPECT_FALSE(at::equal(draws, random_normal({64}, 1, RandomStream::kGradient)));
}

TEST(RandomNormal, ALongerDrawBeginsWithTheShorterOne) {
  const at::Tensor longer = random_normal({33}, 5, RandomStream::kInput);
  EXPECT_TRUE(at::equal(longer.slice(0, 0, 7), random_normal({7}, 5, RandomStream::kInput)));
}

RC_GTEST_PROP(RandomIntegers, StayInRange, ()) {
  const auto limit = *rc::gen::inRange<std::int64_t>(1, 1000);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor draws = random_integers({50}, limit, seed, RandomStream::kTokens);
  RC_ASSERT(draws.min().item<std::int64_t>() >= 0);
  RC_ASSERT(draws.max().item<std::int64_t>() < limit);
}

}  // namespace
}  // namespace attn
