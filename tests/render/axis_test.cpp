#include "render/axis.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/text.h"

namespace attn {
namespace {

std::vector<std::string> texts_of(const std::vector<AxisLabel>& labels) {
  std::vector<std::string> texts;
  for (const AxisLabel& label : labels) texts.push_back(label.text);
  return texts;
}

TEST(LabelStep, IsRoundAndLeavesRoomForALetter) {
  EXPECT_EQ(label_step(18, 18), 1);
  EXPECT_EQ(label_step(17, 18), 2);
  EXPECT_EQ(label_step(8, 18), 5);
  EXPECT_EQ(label_step(2, 18), 10);
  EXPECT_EQ(label_step(1, 18), 20);
  EXPECT_EQ(label_step(1, 200), 200);
  EXPECT_EQ(label_step(1, 201), 500);
}

RC_GTEST_PROP(LabelStep, IsTheSmallestRoundStepWithRoom, ()) {
  const auto cell = *rc::gen::inRange<std::int64_t>(1, 60);
  const auto pitch = *rc::gen::inRange<std::int64_t>(1, 300);
  const std::int64_t step = label_step(cell, pitch);
  RC_ASSERT(step * cell >= pitch);
  RC_ASSERT(step == 1 || step * cell < 5 * pitch / 2 + 5 * cell);
  std::int64_t leading = step;
  while (leading % 10 == 0) leading /= 10;
  RC_ASSERT(leading == 1 || leading == 2 || leading == 5);
}

TEST(LabelText, ShowsSpacesAndControlCharacters) {
  EXPECT_EQ(label_text("word"), "word");
  EXPECT_EQ(label_text(" a b"), "␣a␣b");
  EXPECT_EQ(label_text("\n"), "\\n");
  EXPECT_EQ(label_text(""), "");
}

TEST(LabelText, CutsLongWordsByCharactersNotBytes) {
  EXPECT_EQ(label_text("twelve__long"), "twelve__long");
  EXPECT_EQ(label_text("thirteen_long"), "thirteen_lo…");
  EXPECT_EQ(label_text("ééééééééééééé"), "ééééééééééé…");
}

RC_GTEST_PROP(LabelText, IsNeverLongAndAlwaysValid, (const std::string& bytes)) {
  const std::string text = label_text(bytes);
  RC_ASSERT(!find_invalid_utf8(text));
  RC_ASSERT(code_points(text).size() <= kMaxLabelCharacters);
}

TEST(AxisLabels, ArePositionsWithoutWords) {
  EXPECT_EQ(texts_of(axis_labels(3, {}, 0, 1)), (std::vector<std::string>{"0", "1", "2"}));
}

TEST(AxisLabels, CountPositionsFromTheFirst) {
  EXPECT_EQ(texts_of(axis_labels(2, {}, 3, 1)), (std::vector<std::string>{"3", "4"}));
}

TEST(AxisLabels, ThinPositionsToRoundNumbersOfTheRightRows) {
  const std::vector<AxisLabel> labels = axis_labels(25, {}, 7, 10);
  EXPECT_EQ(texts_of(labels), (std::vector<std::string>{"10", "20", "30"}));
  EXPECT_EQ(labels[0].index, 3);
  EXPECT_EQ(labels[2].index, 23);
}

RC_GTEST_PROP(AxisLabels, APositionStandsAtItsOwnRow, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(1, 500);
  const auto first = *rc::gen::inRange<std::int64_t>(0, 500);
  const auto step = *rc::gen::element<std::int64_t>(1, 2, 5, 10, 20, 50);
  for (const AxisLabel& label : axis_labels(count, {}, first, step)) {
    RC_ASSERT(label.index >= 0 && label.index < count);
    RC_ASSERT(label.text == std::to_string(first + label.index));
  }
}

TEST(AxisLabels, ThinWordsByARegularStep) {
  const std::vector<AxisLabel> labels = axis_labels(5, {"a", "b", "c", "d", "e"}, 0, 2);
  EXPECT_EQ(texts_of(labels), (std::vector<std::string>{"a", "c", "e"}));
  EXPECT_EQ(labels[2].index, 4);
}

TEST(WrappedLines, BreakAtSpaces) {
  EXPECT_EQ(wrapped_lines("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped_lines("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped_lines("one two three", 13), (std::vector<std::string>{"one two three"}));
}

TEST(WrappedLines, BreakInsideAWordOnlyWhereItIsLongerThanALine) {
  EXPECT_EQ(wrapped_lines("abcdefgh ij", 3), (std::vector<std::string>{"abc", "def", "gh", "ij"}));
}

TEST(WrappedLines, AreNoneForNoText) { EXPECT_TRUE(wrapped_lines("", 10).empty()); }

RC_GTEST_PROP(WrappedLines, LoseNoLetterAndFitTheLine, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', ' '));
  const auto width = *rc::gen::inRange<std::int64_t>(1, 20);
  std::string letters;
  for (const std::string& line : wrapped_lines(text, width)) {
    RC_ASSERT(static_cast<std::int64_t>(line.size()) <= width);
    letters += line;
  }
  const auto without_spaces = [](std::string s) {
    std::erase(s, ' ');
    return s;
  };
  RC_ASSERT(without_spaces(letters) == without_spaces(text));
}

}  // namespace
}  // namespace attn
