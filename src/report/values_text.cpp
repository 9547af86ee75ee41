#include "report/values_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

#include "core/text.h"
#include "report/table.h"

namespace attn {
namespace {

constexpr std::int64_t kMaxRows = 32;                 ///< of one matrix.
constexpr double kFixedLow = 1e-3, kFixedHigh = 1e4;  ///< largest values between them are written with fixed decimals.

/// How much room a matrix takes: the wide one is tried first.
struct Style {
  int decimals = 3;
  std::size_t label_width = 12;
  std::size_t gap = 2;
};
constexpr Style kStyles[] = {{3, 12, 2}, {2, 6, 1}};

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value) || value == 0.0) return format_number(value);
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed, decimals).ptr;
  return std::string(text, end);
}

/// Whether fixed decimals show what is in there.
bool suits_fixed(std::span<const double> values) {
  double largest = 0.0;
  bool whole = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    largest = std::max(largest, std::abs(value));
    whole = whole && value == std::trunc(value);
  }
  return !whole && largest >= kFixedLow && largest < kFixedHigh;
}

/// The label, cut at a character's end where it is too long for a column.
std::string short_label(const std::string& label, std::size_t max_width) {
  const std::string clean = printable(label);
  if (display_width(clean) <= max_width) return clean;
  std::string cut;
  for (std::size_t start = 0; start < clean.size();) {
    std::size_t end = start + 1;
    while (end < clean.size() && (static_cast<unsigned char>(clean[end]) & 0xC0U) == 0x80U) ++end;
    const std::string longer = cut + clean.substr(start, end - start);
    if (display_width(longer) + 2 > max_width) break;
    cut = longer;
    start = end;
  }
  return cut + "..";
}

/// Names of rows or columns: the tokens, else positions.
std::vector<std::string> axis_names(std::int64_t count, const std::vector<std::string>* labels, std::size_t max_width) {
  std::vector<std::string> names;
  for (std::int64_t index = 0; index < count; ++index) {
    const bool labelled = labels != nullptr && static_cast<std::size_t>(index) < labels->size();
    names.push_back(labelled ? short_label((*labels)[static_cast<std::size_t>(index)], max_width)
                             : std::to_string(index));
  }
  return names;
}

/// A matrix and the words along it.
struct Grid {
  std::span<const double> values;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::vector<std::string>* row_labels = nullptr;
  const std::vector<std::string>* col_labels = nullptr;
};

/// As many columns as fit; the first holds the names of the rows.
std::vector<TableColumn> table_columns(const Grid& grid, std::int64_t shown_rows, const Style& style) {
  const bool use_fixed = suits_fixed(grid.values);
  std::vector<TableColumn> columns = {{"", true, axis_names(shown_rows, grid.row_labels, kStyles[0].label_width)}};
  const std::vector<std::string> names = axis_names(grid.cols, grid.col_labels, style.label_width);
  for (std::int64_t col = 0; col < grid.cols; ++col) {
    TableColumn column{names[static_cast<std::size_t>(col)], true, {}};
    for (std::int64_t row = 0; row < shown_rows; ++row) {
      const double value = grid.values[static_cast<std::size_t>(row * grid.cols + col)];
      column.cells.push_back(use_fixed ? fixed(value, style.decimals) : format_number(value));
    }
    columns.push_back(std::move(column));
    if (table_width(columns, style.gap) > kTextWidth) {
      columns.pop_back();
      break;
    }
  }
  return columns;
}

void write_matrix(std::ostream& out, const Grid& grid) {
  const std::int64_t shown_rows = std::min(grid.rows, kMaxRows);
  std::vector<TableColumn> columns;
  std::int64_t shown_cols = 0;
  for (const Style& style : kStyles) {
    columns = table_columns(grid, shown_rows, style);
    shown_cols = static_cast<std::int64_t>(columns.size()) - 1;
    if (shown_cols == grid.cols || &style == std::end(kStyles) - 1) write_table(out, columns, style.gap);
    if (shown_cols == grid.cols) break;
  }
  std::vector<std::string> cut;
  if (shown_rows < grid.rows) cut.push_back(std::to_string(shown_rows) + " of " + std::to_string(grid.rows) + " rows");
  if (shown_cols < grid.cols)
    cut.push_back(std::to_string(shown_cols) + " of " + std::to_string(grid.cols) + " columns");
  if (!cut.empty()) out << "  (the first " << join(cut) << ")\n";
}

/// Which of its matrices is shown: "batch 0, head 0" for four axes, "batch 0" for three.
std::string matrix_name(const std::vector<std::int64_t>& shape) {
  return shape.size() > 3 ? "batch 0, head 0" : "batch 0";
}

}  // namespace

void write_values(std::ostream& out, const TraceStep& step, const std::vector<std::vector<std::string>>& token_labels) {
  if (step.values.empty()) return;
  const std::vector<std::int64_t>& shape = step.shape;
  const std::int64_t cols = shape.empty() ? 1 : shape.back();
  const std::int64_t rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  const bool is_map = step.symbolic.ends_with("T, T)");
  const bool rows_are_tokens = is_map || step.symbolic.ends_with("T, d_k)") || step.symbolic.starts_with("(B, T, ");

  const std::string name = (step.pass == "forward" ? "" : "d ") + step.name;
  const std::vector<std::string>* labels = token_labels.empty() ? nullptr : &token_labels.front();
  out << name << ' ' << step.symbolic;
  if (shape.size() > 2) out << ", " << matrix_name(shape);
  out << (is_map ? ": queries down, keys across\n" : "\n");
  write_matrix(out, {std::span(step.values).first(static_cast<std::size_t>(rows * cols)), rows, cols,
                     rows_are_tokens ? labels : nullptr, is_map ? labels : nullptr});
  const std::int64_t matrices = static_cast<std::int64_t>(step.values.size()) / (rows * cols);
  if (matrices > 1) out << "  (1 of " << matrices << "; --json holds all)\n";
  out << '\n';
}

}  // namespace attn
