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

constexpr std::int64_t kMaxMatrices = 4;              ///< of one step.
constexpr std::int64_t kMaxRows = 32;                 ///< of one matrix.
constexpr std::size_t kMaxLabelWidth = 12;            ///< columns of a token label.
constexpr double kFixedLow = 1e-3, kFixedHigh = 1e4;  ///< largest values between them are written with three decimals.

std::string fixed(double value) {
  if (!std::isfinite(value) || value == 0.0) return format_number(value);
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed, 3).ptr;
  return std::string(text, end);
}

/// Whether three decimals show what is in there.
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
std::string short_label(const std::string& label) {
  const std::string clean = printable(label);
  if (display_width(clean) <= kMaxLabelWidth) return clean;
  std::string cut;
  for (std::size_t start = 0; start < clean.size();) {
    std::size_t end = start + 1;
    while (end < clean.size() && (static_cast<unsigned char>(clean[end]) & 0xC0U) == 0x80U) ++end;
    const std::string longer = cut + clean.substr(start, end - start);
    if (display_width(longer) + 2 > kMaxLabelWidth) break;
    cut = longer;
    start = end;
  }
  return cut + "..";
}

/// Names of rows or columns: the tokens, else positions.
std::vector<std::string> axis_names(std::int64_t count, const std::vector<std::string>* labels) {
  std::vector<std::string> names;
  for (std::int64_t index = 0; index < count; ++index) {
    const bool labelled = labels != nullptr && static_cast<std::size_t>(index) < labels->size();
    names.push_back(labelled ? short_label((*labels)[static_cast<std::size_t>(index)]) : std::to_string(index));
  }
  return names;
}

void write_matrix(std::ostream& out, std::span<const double> values, std::int64_t rows, std::int64_t cols,
                  const std::vector<std::string>* row_labels, const std::vector<std::string>* col_labels) {
  const bool use_fixed = suits_fixed(values);
  const std::int64_t shown_rows = std::min(rows, kMaxRows);
  std::vector<TableColumn> columns = {{"", true, axis_names(shown_rows, row_labels)}};
  const std::vector<std::string> names = axis_names(cols, col_labels);
  std::int64_t shown_cols = 0;
  for (; shown_cols < cols; ++shown_cols) {
    TableColumn column{names[static_cast<std::size_t>(shown_cols)], true, {}};
    for (std::int64_t row = 0; row < shown_rows; ++row) {
      const double value = values[static_cast<std::size_t>(row * cols + shown_cols)];
      column.cells.push_back(use_fixed ? fixed(value) : format_number(value));
    }
    columns.push_back(std::move(column));
    if (table_width(columns) > kTextWidth) {
      columns.pop_back();
      break;
    }
  }
  write_table(out, columns);
  if (shown_rows < rows || shown_cols < cols) {
    out << "  (the first " << shown_rows << " of " << rows << " rows, " << shown_cols << " of " << cols
        << " columns)\n";
  }
}

/// "batch 0, head 1" for four axes, "batch 0" for three.
std::string matrix_name(const std::vector<std::int64_t>& shape, std::int64_t matrix) {
  std::vector<std::string> parts;
  std::int64_t rest = matrix;
  for (std::size_t axis = shape.size() - 2; axis-- > 0;) {
    const std::string_view word = axis == 0 ? "batch" : "head";
    parts.insert(parts.begin(), std::string(word) + " " + std::to_string(rest % shape[axis]));
    rest /= shape[axis];
  }
  return join(parts);
}

}  // namespace

void write_values(std::ostream& out, const TraceStep& step, const std::vector<std::vector<std::string>>& token_labels) {
  if (step.values.empty()) return;
  const std::vector<std::int64_t>& shape = step.shape;
  const std::int64_t cols = shape.empty() ? 1 : shape.back();
  const std::int64_t rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  const std::int64_t matrix_size = rows * cols;
  const std::int64_t matrices = static_cast<std::int64_t>(step.values.size()) / matrix_size;
  const bool is_map = step.symbolic.ends_with("T, T)");
  const bool rows_are_tokens = is_map || step.symbolic.ends_with("T, d_k)") || step.symbolic.starts_with("(B, T, ");

  const std::string name = (step.pass == "forward" ? "" : "d ") + step.name;
  for (std::int64_t matrix = 0; matrix < std::min(matrices, kMaxMatrices); ++matrix) {
    out << name << ' ' << step.symbolic;
    if (shape.size() > 2) out << ", " << matrix_name(shape, matrix);
    out << (is_map ? ": queries down, keys across\n" : "\n");

    const std::size_t batch = shape.size() > 2 ? static_cast<std::size_t>(matrix / (matrices / shape[0])) : 0;
    const std::vector<std::string>* labels = batch < token_labels.size() ? &token_labels[batch] : nullptr;
    const auto values =
        std::span(step.values)
            .subspan(static_cast<std::size_t>(matrix * matrix_size), static_cast<std::size_t>(matrix_size));
    write_matrix(out, values, rows, cols, rows_are_tokens ? labels : nullptr, is_map ? labels : nullptr);
    out << '\n';
  }
  if (matrices > kMaxMatrices) {
    out << "  (" << matrices - kMaxMatrices << " more of " << name << " not shown; --json holds all)\n\n";
  }
}

}  // namespace attn
