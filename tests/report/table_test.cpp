#include "report/table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "core/text.h"

namespace attn {
namespace {

std::string table_text(const std::vector<TableColumn>& columns) {
  std::ostringstream out;
  write_table(out, columns);
  return out.str();
}

TEST(Table, AlignsWordsLeftAndNumbersRight) {
  EXPECT_EQ(table_text({{"step", false, {"x", "weights"}}, {"bytes", true, {"48 B", "8 B"}}}),
            "  step     bytes\n"
            "  x         48 B\n"
            "  weights    8 B\n");
}

TEST(Table, LeavesOutAColumnThatSaysNothing) {
  EXPECT_EQ(table_text({{"a", false, {"1"}}, {"nan", true, {""}}, {"b", false, {"2"}}}), "  a  b\n  1  2\n");
}

TEST(Table, HasNoTitleLineWithoutTitles) {
  EXPECT_EQ(table_text({{"", false, {"a.png"}}, {"", false, {"head 0"}}}), "  a.png  head 0\n");
}

TEST(Table, HasNoSpacesAtLineEnds) {
  EXPECT_EQ(table_text({{"a", false, {"1", "1"}}, {"note", false, {"long note", ""}}}),
            "  a  note\n  1  long note\n  1\n");
}

TEST(Table, AlignsWideCharactersByTheirColumns) {
  EXPECT_EQ(table_text({{"", true, {"\u6f22", "ab"}}, {"v", false, {"1", "2"}}}), "      v\n  \u6f22  1\n  ab  2\n");
}

TEST(Table, WidthIsThatOfTheLongestLine) {
  const std::vector<TableColumn> columns = {
      {"step", false, {"position_embedding"}}, {"", false, {""}}, {"n", true, {"123"}}};
  EXPECT_EQ(table_width(columns), std::string("  position_embedding  123").size());
}

TEST(Wrapped, BreaksBetweenWordsOnly) {
  const std::string text = wrapped(std::string(60, 'a') + " " + std::string(60, 'b') + " c", 4);
  EXPECT_EQ(text, "    " + std::string(60, 'a') + "\n    " + std::string(60, 'b') + " c\n");
}

RC_GTEST_PROP(Wrapped, KeepsEveryWordAndNoLineIsTooLong, (const std::vector<std::uint8_t>& lengths)) {
  std::vector<std::string> words;
  for (const std::uint8_t length : lengths) words.push_back(std::string(1 + length % 100, 'w'));
  const std::string text = wrapped(join(words, " "), 9);
  std::istringstream lines(text);
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    RC_ASSERT(line.size() <= kTextWidth);
    std::istringstream in_line(line);
    for (std::string word; in_line >> word;) found.push_back(word);
  }
  RC_ASSERT(found == words);
}

}  // namespace
}  // namespace attn
