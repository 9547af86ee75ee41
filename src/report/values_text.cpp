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
#include "trace/attention_maps.h"

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
std::vector<std::string> axis_names(std::int64_t count, const ValueAxis& axis, std::size_t max_width) {
  const std::vector<std::string>* labels = axis.labels;
  std::vector<std::string> names;
  for (std::int64_t index = axis.first; index < axis.first + count; ++index) {
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
  ValueAxis row_axis, col_axis;
};

/// As many columns as fit; the first holds the names of the rows.
std::vector<TableColumn> table_columns(const Grid& grid, std::int64_t shown_rows, const Style& style) {
  const bool use_fixed = suits_fixed(grid.values);
  std::vector<TableColumn> columns = {{"", true, axis_names(shown_rows, grid.row_axis, kStyles[0].label_width)}};
  const std::vector<std::string> names = axis_names(grid.cols, grid.col_axis, style.label_width);
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

ValuePlaces value_places(const AttentionTrace& trace, const TraceStep& step) {
  const std::optional<Step> found = find_step(step.name);
  if (!found.has_value() || step.pass == "gradient") return {};
  const ForwardCall call = static_cast<std::size_t>(step.call) < trace.calls.size()
                               ? trace.calls[static_cast<std::size_t>(step.call)]
                               : ForwardCall{};
  const std::vector<std::string>* labels = trace.token_labels.empty() ? nullptr : &trace.token_labels.front();
  const ValueAxis queries{labels, call.first_query};
  const ValueAxis keys{trace.config.memory_length ? nullptr : labels, call.first_key};
  if (is_attention_map(*found)) return {queries, keys, true};
  switch (*found) {
    case Step::kTokens:
    case Step::kPositionEmbedding:  // of no item of its own
      return {};
    case Step::kTokenEmbedding:
      return {{labels, 0}, {}, false};
    case Step::kMemory:
    case Step::kKCached:
    case Step::kVCached:
      return {keys, {}, false};
    case Step::kKProj:
    case Step::kVProj:
    case Step::kK:
    case Step::kV:
    case Step::kKNormed:
    case Step::kKRotated:  // those of this call's tokens, or of the memory
      return {trace.config.memory_length ? keys : queries, {}, false};
    default:
      return {queries, {}, false};
  }
}

void write_values(std::ostream& out, const TraceStep& step, const ValuePlaces& places) {
  if (step.values.empty()) return;
  const std::vector<std::int64_t>& shape = step.shape;
  const std::int64_t cols = shape.empty() ? 1 : shape.back();
  const std::int64_t rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];

  out << (step.pass == "forward" ? "" : "d ") << step.name << ' ' << step.symbolic;
  if (step.call > 0) out << ", call " << step.call;
  if (shape.size() > 2) out << ", " << matrix_name(shape);
  out << (places.is_map ? ": queries down, keys across\n" : "\n");
  write_matrix(
      out, {std::span(step.values).first(static_cast<std::size_t>(rows * cols)), rows, cols, places.rows, places.cols});
  const std::int64_t matrices = static_cast<std::int64_t>(step.values.size()) / (rows * cols);
  if (matrices > 1) out << "  (1 of " << matrices << "; --json holds all)\n";
  out << '\n';
}

}  // namespace attn
