// A verification for people: a line a check; numbers and places where they are needed.
#include <ostream>

#include "core/text.h"
#include "report/check_lines.h"
#include "report/run_facts.h"
#include "report/runs_text.h"
#include "report/table.h"
#include "report/text_report.h"

namespace attn {
namespace {

/// A whole report of one run.
struct RunText {
  std::ostream& out;
  const VerifyRun& run;
  const TextOptions& options;

  void operator()(const RunError& error) const { write_error_line(out, error); }

  void operator()(const VerifyResult& result) const {
    std::vector<RunFact> more;
    if (!run.sweep.empty()) more.push_back({"sweep", join(run.sweep)});
    more.push_back({"memory", "at most about " + format_bytes(result.memory_estimate) + " for tensors"});
    if (!result.fault.empty()) more.push_back({"fault", result.fault + ", planted on purpose into this layer"});
    write_run_facts(out, "verify", result.config, result.threads, result.torch_version, options.color, more);
    const std::size_t width = name_width(result.checks);
    for (const CheckResult& check : result.checks) write_check(out, check, width, options);
    out << '\n'
        << heading(to_string(verdict(run)), options.color) << ": " << result.count(CheckStatus::kPass) << " pass, "
        << result.count(CheckStatus::kFail) << " fail, " << result.count(CheckStatus::kNotApplicable) << " n/a, "
        << result.count(CheckStatus::kError) << " error\n";
    write_explanations(out, result, "");
  }

  void operator()(const SelfTestResult& result) const {
    std::vector<RunFact> more;
    if (!run.sweep.empty()) more.push_back({"sweep", join(run.sweep)});
    write_run_facts(out, "self-test", result.config, result.threads, result.torch_version, options.color, more);
    write_self_test(out, result, options);
    out << '\n' << heading(to_string(verdict(run)), options.color) << ": " << self_test_counts(result) << '\n';
  }
};

}  // namespace

void write_explanations(std::ostream& out, const VerifyResult& result, const std::string& indent) {
  if (!result.explained_by.empty()) out << indent << "explained by: " << printable(result.explained_by) << '\n';
  if (result.fault.empty()) return;
  std::vector<std::string> caught_by;
  for (const CheckResult& check : result.checks) {
    if (check.status == CheckStatus::kFail) caught_by.push_back(check.name);
  }
  const std::string said = caught_by.empty() ? "noticed by no check" : "caught by " + join(caught_by);
  out << wrapped("planted fault " + result.fault + ": " + said, indent.size());
}

void write_error_line(std::ostream& out, const RunError& error) {
  out << "  " << status_word(CheckStatus::kError, false) << "  "
      << wrapped(printable(error.message), kDetailIndent).substr(kDetailIndent);
}

void write_text(std::ostream& out, const VerifyRun& run, const TextOptions& options) {
  std::visit(RunText{out, run, options}, run.outcome);
}

}  // namespace attn
