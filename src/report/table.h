// Words in columns. Knows nothing of what the words mean.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace attn {

inline constexpr std::size_t kTextWidth = 120;  ///< columns that a text report may take.

struct TableColumn {
  std::string title;
  bool align_right = false;
  std::vector<std::string> cells;  ///< one a row.
};

inline constexpr std::size_t kTableGap = 2;

/// Title line and rows, indented by two, columns `gap` apart, as wide as their widest word; no spaces at line ends.
/// A column whose cells are all empty is left out, and so is the title line when no column has one. All columns have
/// the same number of cells.
void write_table(std::ostream& out, const std::vector<TableColumn>& columns, std::size_t gap = kTableGap);

/// Columns that write_table() takes, the indentation included.
std::size_t table_width(const std::vector<TableColumn>& columns, std::size_t gap = kTableGap);

/// The text broken between words into lines of at most kTextWidth, each behind `indent` spaces. Ends with a newline.
std::string wrapped(const std::string& text, std::size_t indent);

}  // namespace attn
