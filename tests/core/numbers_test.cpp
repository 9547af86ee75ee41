#include <cmath>
#include <limits>
#include <locale>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/text.h"

namespace attn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ParseInt64, ReadsTheWholeTextAsADecimalInteger) {
  EXPECT_EQ(parse_int64("0"), 0);
  EXPECT_EQ(parse_int64("-17"), -17);
  EXPECT_EQ(parse_int64("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_int64("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
}

TEST(ParseInt64, RefusesEverythingElse) {
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "1,000", "--1", "nan",
                           "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_EQ(parse_int64(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_int64(std::string_view("1\0", 2)), std::nullopt);
}

RC_GTEST_PROP(ParseInt64, ReadsBackWhatWasWritten, (std::int64_t value)) {
  RC_ASSERT(parse_int64(std::to_string(value)) == value);
}

TEST(FormatShape, LooksLikeATuple) {
  EXPECT_EQ(format_shape({2, 4, 8, 8}), "(2, 4, 8, 8)");
  EXPECT_EQ(format_shape({7}), "(7)");
  EXPECT_EQ(format_shape({}), "()");
}

TEST(FormatBytes, HasThreeSignificantDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(15 * 1024 + 512), "15.5 KiB");
  EXPECT_EQ(format_bytes(400 * 1024), "400 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{13} << 28), "3.25 GiB");
}

TEST(FormatBytes, NeverShows1024OfAUnit) {
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(1023 * 1024), "1023 KiB");
  EXPECT_EQ(format_bytes(10 * 1024 - 1), "10.0 KiB");
  EXPECT_EQ(format_bytes(100 * 1024 - 1), "100 KiB");
}

TEST(FormatBytes, KnowsAUnitForTheLargestNumber) {
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(FormatCount, GroupsByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(12345678), "12,345,678");
}

TEST(FormatNumber, DropsTrailingZeros) {
  EXPECT_EQ(format_number(1.0), "1");
  EXPECT_EQ(format_number(0.5), "0.5");
  EXPECT_EQ(format_number(1234), "1234");
}

TEST(FormatNumber, RoundsToSoManyDigits) {
  EXPECT_EQ(format_number(3.14159265), "3.142");
  EXPECT_EQ(format_number(3.14159265, 2), "3.1");
  EXPECT_EQ(format_number(12345), "1.234e+04");
  EXPECT_EQ(format_number(1e-7), "1e-07");
}

TEST(FormatNumber, HasNoMinusZero) {
  EXPECT_EQ(format_number(-0.0), "0");
  EXPECT_EQ(format_number(-1e-9), "-1e-09");
}

TEST(FormatNumber, NamesWhatIsNoNumber) {
  EXPECT_EQ(format_number(kNan), "nan");
  EXPECT_EQ(format_number(-kNan), "nan");
  EXPECT_EQ(format_number(kInfinity), "inf");
  EXPECT_EQ(format_number(-kInfinity), "-inf");
}

TEST(FormatNumber, TakesAnyNumberOfDigits) {
  EXPECT_EQ(format_number(0.1, 17), "0.10000000000000001");
  EXPECT_EQ(format_number(2.5, 0), "2");
  EXPECT_EQ(format_number(0.1, 1000), "0.10000000000000001");
}

// A locale of our own, since none but "C" need be installed.
struct CommaForPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Numbers, DoNotFollowTheLocale) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaForPoint));
  const std::string number = format_number(1234.5, 6);
  const std::string shape = format_shape({123456});
  const std::string bytes = format_bytes(1536);
  std::locale::global(before);
  EXPECT_EQ(number, "1234.5");
  EXPECT_EQ(shape, "(123456)");
  EXPECT_EQ(bytes, "1.50 KiB");
}

RC_GTEST_PROP(FormatNumber, With17DigitsReadsBackExactly, (double value)) {
  RC_PRE(std::isfinite(value) && value != 0.0);
  RC_ASSERT(std::stod(format_number(value, 17)) == value);
}

}  // namespace
}  // namespace attn
