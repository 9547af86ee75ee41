#include "report/verify_run.h"

#include <algorithm>

#include "core/text.h"
#include "report/verdict.h"

namespace attn {
namespace {

constexpr int kUsageStatus = 2;  // README, "exit status"

struct VerdictOf {
  RunVerdict operator()(const RunError& error) const {
    return error.exit_status == kUsageStatus ? RunVerdict::kBadConfig : RunVerdict::kNotRun;
  }
  RunVerdict operator()(const VerifyResult& result) const {
    switch (verdict(result)) {
      case Verdict::kPassed:
        return RunVerdict::kPassed;
      case Verdict::kFailed:
        return RunVerdict::kFailed;
      case Verdict::kError:
        return RunVerdict::kError;
      case Verdict::kNothingChecked:
        break;
    }
    return RunVerdict::kNothingChecked;
  }
  RunVerdict operator()(const SelfTestResult& result) const { return verdict(result); }
};

/// The exit status it stands for decides: 2 before 1 before 3 before 0.
int badness(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::kPassed:
      return 0;
    case RunVerdict::kNothingChecked:
      return 1;
    case RunVerdict::kError:
      return 2;
    case RunVerdict::kNotRun:
      return 3;
    case RunVerdict::kFailed:
      return 4;
    case RunVerdict::kBadConfig:
      break;
  }
  return 5;
}

}  // namespace

std::string run_label(const std::string& source, const std::vector<std::string>& sweep) {
  return printable(sweep.empty() ? source : source + " " + join(sweep, " "));
}

std::string run_label(const VerifyRun& run) { return run_label(run.source, run.sweep); }

RunVerdict verdict(const VerifyRun& run) { return std::visit(VerdictOf{}, run.outcome); }

RunVerdict verdict(const SelfTestResult& result) {
  const FaultCounts counts = count_faults(result);
  if (counts.survived > 0 || counts.missed > 0 || !result.false_alarms.empty()) return RunVerdict::kFailed;
  return counts.planted > 0 ? RunVerdict::kPassed : RunVerdict::kNothingChecked;
}

FaultCounts count_faults(const SelfTestResult& result) {
  FaultCounts counts;
  for (const FaultVerdict& fault : result.faults) {
    if (!fault.not_applicable.empty()) {
      ++counts.not_applicable;
    } else {
      ++counts.planted;
      ++(fault.caught_by.empty() ? counts.survived : counts.caught);
      if (!fault.caught_by.empty() && !fault.missed_by.empty()) ++counts.missed;
    }
  }
  return counts;
}

RunSummary summarize(const std::vector<VerifyRun>& runs) {
  RunSummary summary;
  for (const VerifyRun& run : runs) {
    const RunVerdict verdict_of_run = verdict(run);
    ++summary.runs;
    switch (verdict_of_run) {
      case RunVerdict::kPassed:
        ++summary.passed;
        break;
      case RunVerdict::kFailed:
        ++summary.failed;
        break;
      case RunVerdict::kError:
      case RunVerdict::kNothingChecked:
        ++summary.incomplete;
        break;
      case RunVerdict::kBadConfig:
      case RunVerdict::kNotRun:
        ++summary.not_run;
        break;
    }
    if (badness(verdict_of_run) > badness(summary.worst)) summary.worst = verdict_of_run;
  }
  return summary;
}

std::string to_string(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::kPassed:
      return "passed";
    case RunVerdict::kFailed:
      return "failed";
    case RunVerdict::kError:
      return "a check could not be carried out";
    case RunVerdict::kNothingChecked:
      return "nothing could be checked";
    case RunVerdict::kBadConfig:
      return "the config is wrong";
    case RunVerdict::kNotRun:
      return "could not be run";
  }
  return "unknown";
}

}  // namespace attn
