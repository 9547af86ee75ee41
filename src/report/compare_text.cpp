// A comparison for people: a line a tensor, so that the step where two runs part is seen among those where they agree.
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "core/text.h"
#include "report/compare_report.h"
#include "report/run_facts.h"
#include "report/table.h"

namespace attn {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kMaxNamed = 8;  ///< tensors named in one line.

std::string count(std::int64_t number) { return format_count(static_cast<std::uint64_t>(number)); }

void write_file(std::ostream& out, const char* letter, const ComparedFile& file) {
  std::vector<std::string> facts = {count(file.tensors) + " tensors"};
  if (!file.tool_version.empty()) facts.push_back("attn-cli " + printable(file.tool_version));
  if (!file.torch_version.empty()) facts.push_back("LibTorch " + printable(file.torch_version));
  out << "  " << letter << "  " << printable(file.name) << "\n     " << join(facts) << '\n';
}

std::string status_of(const TensorComparison& tensor) {
  if (!tensor.within()) return "PARTS";
  if (tensor.identical) return "identical";
  return tensor.different == 0 ? "equal" : "agrees";
}

/// Numbers only where something differs.
std::vector<TableColumn> columns_of(const TraceComparison& comparison) {
  std::vector<TableColumn> columns = {{"tensor", false, {}},    {"", false, {}},     {"apart", true, {}},
                                      {"relative", true, {}},   {"limit", true, {}}, {"differing", true, {}},
                                      {"largest at", false, {}}};
  for (const TensorComparison& tensor : comparison.tensors) {
    const bool differs = tensor.different > 0;
    const std::string cells[] = {printable(tensor.name),
                                 status_of(tensor),
                                 differs ? format_number(tensor.largest_difference, 2) : "",
                                 differs ? format_number(tensor.relative, 2) : "",
                                 differs && tensor.limit > 0.0 ? format_number(tensor.limit, 2) : "",
                                 differs ? count(tensor.different) : "",
                                 differs ? format_shape(tensor.worst) : ""};
    for (std::size_t column = 0; column < columns.size(); ++column) columns[column].cells.push_back(cells[column]);
  }
  return columns;
}

/// "batch 0, head 1, query 3, key 2".
std::string place_of(const TensorComparison& tensor) {
  std::vector<std::string> parts;
  for (std::size_t axis = 0; axis < tensor.worst.size(); ++axis) {
    parts.push_back(tensor.axes[axis] + " " + std::to_string(tensor.worst[axis]));
  }
  return parts.empty() ? "its only number" : join(parts);
}

/// Broken between words into lines of at most kWidth.
void write_wrapped(std::ostream& out, const std::string& text, const std::string& indent) {
  std::string line;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    start = end + 1;
    if (!line.empty() && display_width(indent + line) + 1 + display_width(word) > kWidth) {
      out << indent << line << '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  out << indent << line << '\n';
}

void write_parting(std::ostream& out, const TraceComparison& comparison, const TensorComparison& tensor) {
  out << "\nfirst parted: " << printable(tensor.name) << ' ' << format_shape(tensor.shape) << '\n';
  if (tensor.dtype_a != tensor.dtype_b) out << "  dtype       " << tensor.dtype_a << " and " << tensor.dtype_b << '\n';
  if (!tensor.worst.empty()) {
    out << "  largest at  " << place_of(tensor) << ": " << format_number(tensor.worst_a, 9) << " and "
        << format_number(tensor.worst_b, 9) << '\n';
  }
  out << "  beyond      " << count(tensor.beyond) << " of " << count(tensor.elements) << " elements\n";
  if (comparison.rule != CompareRule::kExact) out << "  limit       " << format_number(tensor.limit, 3) << '\n';
}

void write_missing(std::ostream& out, const char* letter, std::vector<std::string> names) {
  if (names.empty()) return;
  const std::size_t total = names.size();
  if (total > kMaxNamed) {
    names.resize(kMaxNamed);
    names.push_back("... (" + std::to_string(total) + " in all)");
  }
  write_wrapped(out, std::string("only in ") + letter + ", not compared: " + printable(join(names)), "");
}

}  // namespace

std::string verdict_of(const TraceComparison& comparison) {
  if (const TensorComparison* parted = comparison.first_parted()) return "part at " + parted->name;
  return comparison.all_identical() ? "identical" : "agree within the limit";
}

void write_text(std::ostream& out, const TraceComparison& comparison, bool color) {
  out << heading("compare", color) << " of two saved traces\n\n";
  write_file(out, "a", comparison.a);
  write_file(out, "b", comparison.b);
  out << '\n';
  const std::vector<TableColumn> columns = columns_of(comparison);
  write_table(out, columns, table_width(columns) > kWidth ? 1 : kTableGap);
  if (const TensorComparison* parted = comparison.first_parted()) write_parting(out, comparison, *parted);
  out << '\n';
  if (!comparison.all_identical()) write_wrapped(out, "limit: " + comparison.limit_reason, "");
  write_missing(out, "a", comparison.only_a);
  write_missing(out, "b", comparison.only_b);

  std::size_t parted = 0;
  std::size_t identical = 0;
  for (const TensorComparison& tensor : comparison.tensors) {
    parted += tensor.within() ? 0 : 1;
    identical += tensor.identical ? 1 : 0;
  }
  out << heading(printable(verdict_of(comparison)), color) << ": " << comparison.tensors.size() << " compared, "
      << identical << " identical bit for bit, " << parted << " beyond the limit\n";
}

}  // namespace attn
