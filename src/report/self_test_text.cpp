// A self-test for people: a table of the planted faults, and what slipped through.
#include <algorithm>
#include <ostream>
#include <sstream>

#include "core/text.h"
#include "report/check_lines.h"
#include "report/runs_text.h"
#include "report/table.h"

namespace attn {
namespace {

constexpr std::size_t kSelfTestWidth = 100;  ///< columns of the table: it is shown in README and CI logs.
constexpr std::size_t kShortestWords = 20;

std::string counted(std::int64_t count, const std::string& thing) {
  return format_count(static_cast<std::uint64_t>(count)) + " " + thing + (count == 1 ? "" : "s");
}

std::string caught_words(const FaultVerdict& fault) {
  if (!fault.not_applicable.empty()) return "n/a";
  return fault.caught_by.empty() ? "SURVIVED" : fault.caught_by;
}

std::string what_it_said(const FaultVerdict& fault) {
  if (!fault.not_applicable.empty()) return fault.not_applicable;
  if (!fault.missed_by.empty()) return "missed by " + join(fault.missed_by);
  return fault.detail;
}

void write_alarm(std::ostream& out, const std::string& words, bool color) {
  out << "  " << in_red(printable(words), color) << '\n';
}

}  // namespace

void write_self_test(std::ostream& out, const SelfTestResult& result, const TextOptions& options) {
  std::vector<const FaultVerdict*> shown;
  for (const FaultVerdict& fault : result.faults) {
    if (fault.not_applicable.empty() || options.verbose) shown.push_back(&fault);
  }
  std::vector<TableColumn> columns = {
      {"fault", false, {}}, {"caught by", false, {}}, {"size", true, {}}, {"what it said", false, {}}};
  for (const FaultVerdict* fault : shown) {
    columns[0].cells.push_back(printable(fault->name));
    columns[1].cells.push_back(caught_words(*fault));
    columns[2].cells.push_back(fault->measured ? format_number(*fault->measured, 3) : "");
    columns[3].cells.emplace_back("");
  }
  const std::size_t taken = table_width(columns) + kTableGap;
  const std::size_t room = std::max(kShortestWords, kSelfTestWidth > taken ? kSelfTestWidth - taken : 0);
  for (std::size_t row = 0; row < shown.size(); ++row) {
    columns[3].cells[row] = shortened(what_it_said(*shown[row]), room);
  }
  std::ostringstream table;
  write_table(table, columns);

  std::istringstream lines(table.str());
  std::string line;
  if (std::getline(lines, line)) out << line << '\n';
  for (std::size_t row = 0; std::getline(lines, line); ++row) {
    const bool wrong = shown[row]->not_applicable.empty() && !shown[row]->caught();
    out << (wrong ? in_red(line, options.color) : line) << '\n';
  }
  write_self_test_problems(out, result, options);
}

void write_self_test_problems(std::ostream& out, const SelfTestResult& result, const TextOptions& options) {
  for (const FaultVerdict& fault : result.faults) {
    if (!fault.not_applicable.empty() || fault.caught()) continue;
    std::string words = "fault " + fault.name + ": " +
                        (fault.caught_by.empty() ? "no check caught it" : "caught by " + fault.caught_by);
    if (!fault.missed_by.empty()) {
      words += std::string(fault.caught_by.empty() ? ", not even " : ", but missed by ") + join(fault.missed_by);
    }
    write_alarm(out, words, options.color);
  }
  if (result.false_alarms.empty()) return;
  write_alarm(out, "the honest layer raised " + counted(std::ssize(result.false_alarms), "alarm"), options.color);
  const std::size_t width = name_width(result.false_alarms);
  for (const CheckResult& alarm : result.false_alarms) write_check(out, alarm, width, options);
}

std::string self_test_counts(const SelfTestResult& result) {
  const FaultCounts counts = count_faults(result);
  return counted(counts.planted, "fault") + " planted, " + std::to_string(counts.caught) + " caught, " +
         std::to_string(counts.survived) + " survived, " +
         (counts.missed > 0 ? std::to_string(counts.missed) + " missed by a check that must catch it, " : "") +
         std::to_string(counts.not_applicable) + " n/a; " + counted(std::ssize(result.false_alarms), "false alarm");
}

}  // namespace attn
