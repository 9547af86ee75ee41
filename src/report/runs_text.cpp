// Several verifications for people: what went wrong in each, then a table with a line a run, and one verdict.
#include "report/runs_text.h"

#include <ostream>

#include "core/text.h"
#include "report/check_lines.h"
#include "report/run_facts.h"
#include "report/table.h"

namespace attn {
namespace {

/// "  pass   shapes, finite, row-sums".
void write_names(std::ostream& out, const VerifyResult& result, CheckStatus status, bool color) {
  std::vector<std::string> names;
  for (const CheckResult& check : result.checks) {
    if (check.status == status) names.push_back(check.name);
  }
  if (names.empty()) return;
  out << "  " << status_word(status, color) << "  " << wrapped(join(names), kDetailIndent).substr(kDetailIndent);
}

/// One run of several: in full with --verbose, else what is wrong, and the rest by name.
struct BlockText {
  std::ostream& out;
  const TextOptions& options;

  void operator()(const RunError& error) const { write_error_line(out, error); }

  void operator()(const VerifyResult& result) const {
    const std::size_t width = name_width(result.checks);
    for (const CheckResult& check : result.checks) {
      const bool wrong = check.status == CheckStatus::kFail || check.status == CheckStatus::kError;
      if (wrong || options.verbose) write_check(out, check, width, options);
    }
    if (!options.verbose) {
      write_names(out, result, CheckStatus::kPass, options.color);
      write_names(out, result, CheckStatus::kNotApplicable, options.color);
    }
    write_explanations(out, result, "  ");
  }

  void operator()(const SelfTestResult& result) const {
    if (options.verbose) {
      write_self_test(out, result, options);
    } else {
      write_self_test_problems(out, result, options);
      out << "  " << self_test_counts(result) << '\n';
    }
  }
};

/// The columns of the summary that depend on what was run.
struct SummaryTable {
  TableColumn source{"config", false, {}}, sweep{"sweep", false, {}}, verdicts{"verdict", false, {}};
  TableColumn planted{"planted", true, {}}, caught{"caught", true, {}}, survived{"survived", true, {}};
  TableColumn alarms{"false alarms", true, {}};
  TableColumn pass{"pass", true, {}}, fail{"fail", true, {}}, none{"n/a", true, {}}, error{"error", true, {}};

  void add(const VerifyRun& run) {
    source.cells.push_back(printable(run.source));
    sweep.cells.push_back(printable(join(run.sweep, " ")));
    verdicts.cells.push_back(to_string(verdict(run)));
    for (TableColumn* column : {&planted, &caught, &survived, &alarms, &pass, &fail, &none, &error}) {
      column->cells.emplace_back("");
    }
    std::visit(*this, run.outcome);
  }

  void operator()(const RunError&) {}
  void operator()(const VerifyResult& result) {
    pass.cells.back() = std::to_string(result.count(CheckStatus::kPass));
    fail.cells.back() = std::to_string(result.count(CheckStatus::kFail));
    none.cells.back() = std::to_string(result.count(CheckStatus::kNotApplicable));
    error.cells.back() = std::to_string(result.count(CheckStatus::kError));
  }
  void operator()(const SelfTestResult& result) {
    const FaultCounts counts = count_faults(result);
    planted.cells.back() = std::to_string(counts.planted);
    caught.cells.back() = std::to_string(counts.caught);
    survived.cells.back() = std::to_string(counts.survived);
    none.cells.back() = std::to_string(counts.not_applicable);
    alarms.cells.back() = std::to_string(result.false_alarms.size());
  }

  /// Columns without an entry are left out by the table itself.
  std::vector<TableColumn> columns() const {
    return {source, sweep, planted, caught, survived, pass, fail, none, error, alarms, verdicts};
  }
};

std::string verdict_of_all(const RunSummary& summary) {
  if (summary.worst == RunVerdict::kBadConfig) return "a config is wrong";
  if (summary.worst == RunVerdict::kNotRun) return "a run could not be carried out";
  return to_string(summary.worst);
}

}  // namespace

void write_block(std::ostream& out, const VerifyRun& run, const TextOptions& options) {
  out << heading(run_label(run), options.color) << '\n';
  std::visit(BlockText{out, options}, run.outcome);
  out << '\n';
}

void write_summary(std::ostream& out, const std::vector<VerifyRun>& runs, const TextOptions& options) {
  SummaryTable table;
  for (const VerifyRun& run : runs) table.add(run);
  const RunSummary summary = summarize(runs);
  out << heading("summary of " + std::to_string(summary.runs) + " runs", options.color) << "\n\n";
  write_table(out, table.columns());
  out << '\n'
      << heading(verdict_of_all(summary), options.color) << ": " << summary.passed << " of " << summary.runs
      << " runs passed, " << summary.failed << " failed, " << summary.incomplete << " incomplete, " << summary.not_run
      << " not run\n";
}

}  // namespace attn
