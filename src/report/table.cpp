#include "report/table.h"

#include <algorithm>
#include <ostream>

#include "core/text.h"

namespace attn {
namespace {

constexpr std::size_t kIndent = 2;

bool is_empty(const TableColumn& column) {
  return std::all_of(column.cells.begin(), column.cells.end(), [](const std::string& cell) { return cell.empty(); });
}

std::size_t column_width(const TableColumn& column) {
  std::size_t width = display_width(column.title);
  for (const std::string& cell : column.cells) width = std::max(width, display_width(cell));
  return width;
}

void append_cell(std::string& line, const std::string& cell, const TableColumn& column, std::size_t width,
                 std::size_t gap) {
  line += std::string(line.empty() ? kIndent : gap, ' ') + padded(cell, width, column.align_right);
}

void write_line(std::ostream& out, const std::string& line) {
  out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
}

}  // namespace

void write_table(std::ostream& out, const std::vector<TableColumn>& columns, std::size_t gap) {
  std::vector<std::pair<const TableColumn*, std::size_t>> shown;
  for (const TableColumn& column : columns) {
    if (!is_empty(column)) shown.emplace_back(&column, column_width(column));
  }
  if (shown.empty()) return;

  std::string titles;
  bool has_titles = false;
  for (const auto& [column, width] : shown) {
    append_cell(titles, column->title, *column, width, gap);
    has_titles = has_titles || !column->title.empty();
  }
  if (has_titles) write_line(out, titles);
  for (std::size_t row = 0; row < shown.front().first->cells.size(); ++row) {
    std::string line;
    for (const auto& [column, width] : shown) append_cell(line, column->cells[row], *column, width, gap);
    write_line(out, line);
  }
}

std::size_t table_width(const std::vector<TableColumn>& columns, std::size_t gap) {
  std::size_t total = 0;
  for (const TableColumn& column : columns) {
    if (!is_empty(column)) total += (total == 0 ? kIndent : gap) + column_width(column);
  }
  return total;
}

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string result;
  std::string line;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    start = end + 1;
    if (!line.empty() && indent + display_width(line) + 1 + display_width(word) > kTextWidth) {
      result += std::string(indent, ' ') + line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + std::string(indent, ' ') + line + '\n';
}

}  // namespace attn
