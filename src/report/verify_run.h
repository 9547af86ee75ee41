// One run of `attn-cli verify`, and all runs of one command: what the writers of text, JSON and JUnit are handed.
// Filled by `cli`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "checks/check.h"
#include "checks/faults/faults.h"

namespace attn {

/// A run that could not be carried out: a broken config, no memory.
struct RunError {
  std::string message;  ///< "configs/tiny.json: /H: must ..."
  int exit_status = 0;  ///< what the program would have ended with, had this been its only run.
};

/// One config, with one combination of the sweep's values.
struct VerifyRun {
  std::string source;              ///< where the config came from: a path, "-" or "--set".
  std::vector<std::string> sweep;  ///< "dtype=float64", one for each --sweep.
  bool quick = false;              ///< --quick was given.
  std::variant<RunError, VerifyResult, SelfTestResult> outcome;
};

/// "configs/tiny.json dtype=float64".
std::string run_label(const std::string& source, const std::vector<std::string>& sweep);
std::string run_label(const VerifyRun& run);

/// What a run amounts to.
enum class RunVerdict {
  kPassed,          ///< no check failed or errored, at least one passed; in a self-test every fault was caught.
  kFailed,          ///< a check failed; in a self-test a fault survived, or the honest layer raised an alarm.
  kError,           ///< no check failed, but one could not be carried out.
  kNothingChecked,  ///< every check was n/a, or no fault could be planted.
  kBadConfig,       ///< not run: the config is wrong.
  kNotRun,          ///< not run: file, memory, device, internal.
};

RunVerdict verdict(const VerifyRun& run);
RunVerdict verdict(const SelfTestResult& result);

/// A self-test's faults by what became of them: each that was planted is caught or survived.
struct FaultCounts {
  std::int64_t planted = 0, caught = 0, survived = 0, not_applicable = 0;
  std::int64_t missed = 0;  ///< of the caught ones: a check that must catch it did not.
};
FaultCounts count_faults(const SelfTestResult& result);

/// How many runs came out how, and what they amount to together: the worst, where a wrong config is worse than a failed
/// check, and that than anything that could not be done.
struct RunSummary {
  std::int64_t runs = 0, passed = 0, failed = 0;
  std::int64_t incomplete = 0;  ///< a check could not be carried out, or nothing could be checked.
  std::int64_t not_run = 0;     ///< the config is wrong, or it could not be done.
  RunVerdict worst = RunVerdict::kPassed;
};
RunSummary summarize(const std::vector<VerifyRun>& runs);

/// "passed", "failed", "a check could not be carried out", "nothing could be checked",
/// "the config is wrong", "could not be run".
std::string to_string(RunVerdict verdict);

}  // namespace attn
