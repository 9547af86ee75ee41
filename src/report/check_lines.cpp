#include "report/check_lines.h"

#include <algorithm>
#include <ostream>
#include <string_view>

#include "core/text.h"
#include "report/table.h"

namespace attn {
namespace {

std::string_view status_color(CheckStatus status) {
  switch (status) {
    case CheckStatus::kPass:
      return "\x1b[32m";
    case CheckStatus::kFail:
      return "\x1b[31m";
    case CheckStatus::kNotApplicable:
      return "\x1b[2m";
    case CheckStatus::kError:
      return "\x1b[35m";
  }
  return "";
}

std::string count(std::int64_t number) { return format_count(static_cast<std::uint64_t>(number)); }

/// "largest difference: 3.1e-07, limit 1e-06, 12,800 compared".
std::string figures(const CheckResult& check) {
  std::vector<std::string> parts;
  if (check.measured) {
    const std::string unit = check.unit.empty() ? "measured" : check.unit;
    parts.push_back(unit + ": " + format_number(*check.measured, 3));
  }
  if (check.limit) parts.push_back("limit " + format_number(*check.limit, 3));
  if (check.compared > 0) parts.push_back(count(check.compared) + " compared");
  if (!check.sampled.empty()) parts.push_back(check.sampled);  // nobody shall take a sample for the whole
  return join(parts);
}

/// The numbers of a pass; for anything else what happened.
std::string headline(const CheckResult& check) {
  const bool words_first = check.status != CheckStatus::kPass;
  const std::string numbers = figures(check);
  if (words_first) return check.detail.empty() ? numbers : check.detail;
  return numbers.empty() ? check.detail : numbers;
}

void write_fact(std::ostream& out, const std::string& name, const std::string& text) {
  if (!text.empty()) write_detail(out, name + " " + text);
}

/// How large the error is, against which limit, and where it is.
void write_failure(std::ostream& out, const CheckResult& check) {
  if (check.measured && check.limit) {
    const std::string unit = check.unit.empty() ? "" : " (" + check.unit + ")";
    write_fact(out, "measured", format_number(*check.measured, 6) + unit + ", limit " + format_number(*check.limit, 6));
  }
  write_fact(out, "limit is", check.limit_reason);
  if (check.compared > 0) write_fact(out, "outside", count(check.wrong) + " of " + count(check.compared) + " compared");
  write_fact(out, "first at", check.where_first);
  write_fact(out, "worst at", check.where_worst);
}

}  // namespace

std::string status_word(CheckStatus status, bool color) {
  const std::string word = padded(to_string(status), kStatusWidth);
  return color ? std::string(status_color(status)) + word + "\x1b[0m" : word;
}

std::string in_red(const std::string& word, bool color) {
  return color ? std::string(status_color(CheckStatus::kFail)) + word + "\x1b[0m" : word;
}

std::size_t name_width(const std::vector<CheckResult>& checks) {
  std::size_t width = 0;
  for (const CheckResult& check : checks) width = std::max(width, display_width(check.name));
  return width;
}

void write_detail(std::ostream& out, const std::string& text) { out << wrapped(printable(text), kDetailIndent); }

void write_check(std::ostream& out, const CheckResult& check, std::size_t width_of_names, const TextOptions& options) {
  const std::string said = headline(check);
  const std::size_t indent = 2 + kStatusWidth + 2 + width_of_names + 2;
  out << "  " << status_word(check.status, options.color) << "  ";
  if (said.empty()) {
    out << check.name << '\n';
  } else {
    out << padded(check.name, width_of_names) << "  " << wrapped(printable(said), indent).substr(indent);
  }
  if (check.status == CheckStatus::kFail) write_failure(out, check);
  if (!options.verbose) return;
  if (check.status == CheckStatus::kPass) {
    if (!check.detail.empty() && check.detail != said) write_detail(out, check.detail);
    write_fact(out, "limit is", check.limit_reason);
  }
  write_fact(out, "took", format_number(check.seconds, 3) + " s");
}

}  // namespace attn
