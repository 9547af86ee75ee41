#include "checks/comparison.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "checks/findings.h"
#include "checks/reference/number_format.h"
#include "core/error.h"

namespace attn {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor numbers(const std::vector<double>& values) { return at::tensor(values, at::kDouble).view({1, 1, 2, -1}); }

TEST(Compare, SaysHowMuchHowManyAndWhere) {
  const Comparison comparison = compare(numbers({0, 1, 2, 3}), numbers({0, 1.5, 2, 1}), {0.4, "why"}, kPairAxes);
  EXPECT_EQ(comparison.measured, 2.0);
  EXPECT_EQ(comparison.compared, 4);
  EXPECT_EQ(comparison.wrong, 2);
  EXPECT_EQ(comparison.where_first, "(batch 0, head 0, query 0, key 1)");
  EXPECT_EQ(comparison.where_worst, "(batch 0, head 0, query 1, key 1)");
  EXPECT_FALSE(comparison.passed());
}

TEST(Compare, ExactlyTheLimitPasses) {
  EXPECT_TRUE(compare(numbers({0, 1}), numbers({0, 1.5}), {0.5, ""}, kPairAxes).passed());
  EXPECT_FALSE(compare(numbers({0, 1}), numbers({0, 1.5}), {0.49, ""}, kPairAxes).passed());
}

TEST(Compare, NonFiniteOnEitherSideNeverPasses) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    for (const bool on_both : {false, true}) {
      const at::Tensor actual = numbers({bad, 1}), expected = numbers({on_both ? bad : 0.0, 1});
      for (const Comparison& comparison :
           {compare(actual, expected, {kInfinity, ""}, kPairAxes),
            compare(expected, actual, {kInfinity, ""}, kPairAxes), compare_bits(actual, expected, "", kPairAxes)}) {
        EXPECT_EQ(comparison.non_finite, 1);
        EXPECT_EQ(comparison.wrong, 1);
        EXPECT_TRUE(std::isnan(comparison.measured));
        EXPECT_EQ(comparison.where_worst, "(batch 0, head 0, query 0, key 0)");
      }
    }
  }
}

TEST(Compare, ALimitThatIsNanPassesNothing) {
  EXPECT_FALSE(compare(numbers({0, 1}), numbers({0, 1}), {kNan, ""}, kPairAxes).passed());
}

TEST(Compare, NothingComparedIsNoPass) {
  const at::Tensor nothing = at::empty({1, 1, 0, 3});
  EXPECT_FALSE(compare(nothing, nothing, {1.0, ""}, kPairAxes).passed());
  EXPECT_FALSE(compare_bits(nothing, nothing, "", kPairAxes).passed());
}

TEST(Compare, RefusesOtherShapes) { EXPECT_THROW(compare(at::zeros({2}), at::zeros({3}), {0.0, ""}, {}), Error); }

TEST(CompareBits, SeesTheLastBitInEveryFormat) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    const at::Tensor one = at::ones({1, 1, 3}, type), next = one.clone();
    next[0][0][2] += epsilon_of(type);
    EXPECT_TRUE(compare_bits(one, one, "", kTokenAxes).passed());
    const Comparison comparison = compare_bits(next, one, "", kTokenAxes);
    EXPECT_EQ(comparison.wrong, 1) << number_name(type);
    EXPECT_EQ(comparison.where_first, "(batch 0, token 0, channel 2)");
  }
}

TEST(CompareBits, ZeroIsNotMinusZero) { EXPECT_EQ(compare_bits(at::zeros({1}), -at::zeros({1}), "", {}).wrong, 1); }

TEST(PlaceOf, NamesEveryAxisAndCountsFromTheFirstEntry) {
  EXPECT_EQ(place_of(23, {1, 2, 3, 4}, kPairAxes), "(batch 0, head 1, query 2, key 3)");
  EXPECT_EQ(place_of(23, {1, 2, 3, 4}, kPairAxes, 5), "(batch 5, head 1, query 2, key 3)");
  EXPECT_EQ(place_of(3, {2, 2}, {"row"}), "(row 1, axis 1 1)");
}

Comparison comparison_of(double measured, double limit, std::int64_t wrong) {
  Comparison comparison;
  comparison.measured = measured;
  comparison.limit = {limit, "because"};
  comparison.compared = 10;
  comparison.wrong = wrong;
  if (wrong > 0) comparison.where_first = comparison.where_worst = "(batch 0)";
  return comparison;
}

TEST(Findings, PassOnlyWhenSomethingWasComparedAndNothingIsWrong) {
  Findings nothing("unit");
  EXPECT_EQ(nothing.result().status, CheckStatus::kFail);
  EXPECT_EQ(nothing.result().detail, "nothing could be compared");
  Findings good("unit");
  good.add("", comparison_of(0.5, 1.0, 0));
  EXPECT_EQ(good.result().status, CheckStatus::kPass);
  good.fail("but");
  EXPECT_EQ(good.result().status, CheckStatus::kFail);
  EXPECT_EQ(good.result().detail, "but");
}

TEST(Findings, ReportTheComparisonThatIsFurthestBeyondItsLimit) {
  Findings findings("unit");
  findings.add("a", comparison_of(0.5, 1.0, 0));
  findings.add("b", comparison_of(3e-6, 1e-6, 2));
  findings.add("c", comparison_of(2.0, 1.5, 1));
  const CheckResult result = findings.result();
  EXPECT_EQ(result.status, CheckStatus::kFail);
  EXPECT_EQ(result.measured, 3e-6);
  EXPECT_EQ(result.limit, 1e-6);
  EXPECT_EQ(result.where_first, "b (batch 0)");
  EXPECT_EQ(result.where_worst, "b (batch 0)");
  EXPECT_EQ(result.compared, 30);
  EXPECT_EQ(result.wrong, 3);
}

TEST(Findings, ShowASupportingComparisonOnlyWhenItAloneIsWrong) {
  Findings findings("unit");
  findings.add("main", comparison_of(0.1, 1.0, 0));
  findings.add_support("support", comparison_of(0.9, 1.0, 0));
  EXPECT_EQ(findings.result().measured, 0.1);
  findings.add_support("support", comparison_of(3.0, 1.0, 1));
  EXPECT_EQ(findings.result().measured, 3.0);
  EXPECT_EQ(findings.result().where_worst, "support (batch 0)");
  EXPECT_EQ(findings.result().status, CheckStatus::kFail);
  Findings both("unit");
  both.add("main", comparison_of(2.0, 1.0, 1));
  both.add_support("support", comparison_of(3.0, 1.0, 1));
  EXPECT_EQ(both.result().measured, 2.0);
  EXPECT_EQ(both.result().wrong, 2);
}

TEST(Findings, TellThreeFaultsAndHowManyMore) {
  Findings findings("unit");
  for (const char* fault : {"a", "b", "c", "d", "e"}) findings.fail(fault);
  findings.add("", comparison_of(0.0, 1.0, 0));
  EXPECT_EQ(findings.result().detail, "a; b; c; and 2 more");
}

TEST(Findings, NanIsFurthestOfAll) {
  Findings findings("unit");
  findings.add("a", comparison_of(kNan, 1.0, 1));
  findings.add("b", comparison_of(5.0, 1.0, 1));
  EXPECT_TRUE(std::isnan(findings.result().measured.value()));
}

}  // namespace
}  // namespace attn
