#include "report/values_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "core/text.h"
#include "report/records.h"
#include "report/table.h"

namespace attn {
namespace {

using Labels = std::vector<std::vector<std::string>>;

/// As in the trace of a run that went on after `calls`.
std::string values_of(const TraceStep& step, const Labels& labels = {}, std::vector<ForwardCall> calls = {},
                      std::optional<std::int64_t> memory_length = std::nullopt) {
  AttentionTrace trace;
  trace.token_labels = labels;
  trace.calls = std::move(calls);
  trace.config.memory_length = memory_length;
  std::ostringstream out;
  write_values(out, step, value_places(trace, step));
  return out.str();
}

TraceStep one_head(std::vector<double> values) {
  TraceStep step = testing::make_step("forward", "weights", "(B, H, T, T)", {1, 1, 2, 2});
  step.values = std::move(values);
  return step;
}

TEST(Values, ShowAHeadWithItsTokensAtRowsAndColumns) {
  EXPECT_EQ(values_of(one_head({1, 0, 0.25, 0.75}), {{"The", "key"}}),
            "weights (B, H, T, T), batch 0, head 0: queries down, keys across\n"
            "         The    key\n"
            "  The  1.000      0\n"
            "  key  0.250  0.750\n"
            "\n");
}

TEST(Values, UsePositionsWhereThereAreNoTokens) {
  EXPECT_EQ(values_of(one_head({1, 0, 0.25, 0.75})),
            "weights (B, H, T, T), batch 0, head 0: queries down, keys across\n"
            "         0      1\n"
            "  0  1.000      0\n"
            "  1  0.250  0.750\n"
            "\n");
}

TEST(Values, TellAnExactZeroFromASmallNumber) {
  const std::string text = values_of(one_head({1, 0, 1e-5, 0.99999}));
  EXPECT_NE(text.find("  1.000      0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  0.000  1.000\n"), std::string::npos) << text;
}

TEST(Values, NameInfinityAndNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string text = values_of(one_head({0.5, -infinity, std::nan(""), infinity}));
  EXPECT_NE(text.find("-inf"), std::string::npos);
  EXPECT_NE(text.find("nan"), std::string::npos);
}

TEST(Values, KeepVerySmallAndVeryLargeNumbersReadable) {
  EXPECT_NE(values_of(one_head({1e-9, 2e-9, 3e-9, 4e-9})).find("1e-09"), std::string::npos);
  EXPECT_NE(values_of(one_head({1e9, 2e9, 3e9, 4.5e9})).find("4.5e+09"), std::string::npos);
}

TEST(Values, CutLongTokensAndEscapeControlCharacters) {
  const std::string text = values_of(one_head({1, 0, 0.5, 0.5}), {{"incomprehensibility", "\n"}});
  EXPECT_NE(text.find("incomprehe.."), std::string::npos) << text;
  EXPECT_NE(text.find("\\n"), std::string::npos) << text;
}

TEST(Values, NeverCutInsideACharacter) {
  const std::string text = values_of(one_head({1, 0, 0.5, 0.5}), {{"\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22", "a"}});
  EXPECT_FALSE(find_invalid_utf8(text).has_value()) << text;
}

TEST(Values, AreOfOneHeadAndSaySo) {
  TraceStep step = testing::make_step("forward", "weights", "(B, H, T, T)", {2, 1, 1, 1});
  step.values = {0.5, 1};
  EXPECT_EQ(values_of(step, {{"first"}, {"second"}}),
            "weights (B, H, T, T), batch 0, head 0: queries down, keys across\n"
            "         first\n"
            "  first  0.500\n"
            "  (1 of 2; --json holds all)\n"
            "\n");
}

TEST(Values, ComeCloserTogetherWhereThatShowsMoreOfThem) {
  TraceStep step = testing::make_step("forward", "weights", "(B, H, T, T)", {1, 1, 20, 20});
  step.values.assign(400, 0.125);
  const std::string text = values_of(step);
  EXPECT_NE(text.find(" 0.12 0.12 "), std::string::npos) << text;
  EXPECT_EQ(text.find("the first"), std::string::npos) << text;
}

TEST(Values, SayWhatTheyLeaveOut) {
  TraceStep step = testing::make_step("forward", "weights", "(B, H, T, T)", {1, 6, 40, 40});
  step.values.assign(6 * 40 * 40, 0.125);
  const std::string text = values_of(step);
  EXPECT_NE(text.find("(the first 32 of 40 rows, 23 of 40 columns)"), std::string::npos) << text;
  EXPECT_NE(text.find("(1 of 6; --json holds all)"), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), kTextWidth) << line;
}

TEST(Values, OfAGradientAreMarkedAsSuch) {
  TraceStep step = testing::make_step("gradient", "o_proj.bias", "(d_model)", {2});
  step.values = {0.5, 1.5};
  EXPECT_EQ(values_of(step), "d o_proj.bias (d_model)\n         0      1\n  0  0.500  1.500\n\n");
}

TEST(Values, AreNothingForAStepThatCarriesNone) {
  EXPECT_EQ(values_of(testing::make_step("forward", "x", "(B, T, d_model)", {1, 3, 4})), "");
}

TEST(Values, OfALaterCallAreNamedByTheirPlaceInTheSequence) {
  TraceStep step = testing::make_step("forward", "weights", "(B, H, T_q, T_k)", {1, 1, 2, 5});
  step.call = 1;
  step.values.assign(10, 0.2);
  const ForwardCall first{0, 0, 3, 0, 3, 0, ""}, second{1, 3, 2, 0, 5, 0, ""};
  EXPECT_EQ(values_of(step, {}, {first, second}),
            "weights (B, H, T_q, T_k), call 1, batch 0, head 0: queries down, keys across\n"
            "         0      1      2      3      4\n"
            "  3  0.200  0.200  0.200  0.200  0.200\n"
            "  4  0.200  0.200  0.200  0.200  0.200\n"
            "\n");
  EXPECT_NE(values_of(step, {{"a", "b", "c", "d", "e"}}, {first, second}).find("\n  d  0.200"), std::string::npos);
}

TEST(Values, OfAWindowedCacheBeginAtItsOldestKey) {
  TraceStep step = testing::make_step("forward", "k_cached", "(B, H, T_k, d_k)", {1, 1, 2, 1});
  step.call = 1;
  step.values = {0.5, 1.5};
  const std::string text = values_of(step, {{"a", "b", "c", "d"}}, {{0, 0, 3, 0, 3, 0, ""}, {1, 3, 1, 2, 2, 0, ""}});
  EXPECT_NE(text.find("  c  0.500\n  d  1.500\n"), std::string::npos) << text;
}

TEST(Values, KeysOfAMemoryHaveNoWords) {
  TraceStep step = testing::make_step("forward", "weights", "(B, H, T_q, T_k)", {1, 1, 1, 2});
  step.values = {0.25, 0.75};
  const std::string text = values_of(step, {{"word"}}, {{0, 0, 1, 0, 2, 0, ""}}, 2);
  EXPECT_NE(text.find("            0      1\n  word  0.250  0.750\n"), std::string::npos) << text;
  step = testing::make_step("forward", "k", "(B, H, T_k, d_k)", {1, 1, 1, 2});
  step.values = {0.25, 0.75};
  EXPECT_EQ(values_of(step, {{"word"}}, {{0, 0, 1, 0, 2, 0, ""}}, 2).find("word"), std::string::npos);
}

}  // namespace
}  // namespace attn
