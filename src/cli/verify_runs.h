// Which runs a command line of verify means - configs, folders, sweeps - and carrying them out, one after the other.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "checks/check_list.h"
#include "config/run_config.h"
#include "report/verify_run.h"

namespace attn {

/// One run to come: a valid config, or the reason why there is none.
struct PlannedRun {
  std::string source;
  std::vector<std::string> sweep;
  std::optional<RunConfig> config;
  std::exception_ptr failure;  ///< not null exactly when there is no config.
};

/// Every config (a folder stands for its *.json files, in order of their names; "-" for `in`) with every combination of
/// the sweeps. Without a config, --set and --sweep must give one. A broken config becomes a run that has failed.
/// Throws ConfigError: no config, "-" twice, a sweep that is none.
std::vector<PlannedRun> plan_runs(const std::vector<std::string>& configs, const std::vector<std::string>& set_words,
                                  const std::vector<std::string>& sweep_words, std::istream& in);

/// What is done to each run.
struct VerifyTask {
  VerifyOptions selection;            ///< `progress` is set by carry_out().
  std::vector<std::string> required;  ///< checks whose n/a is a failure.
  bool strict = false;
  bool self_test = false;
  std::optional<std::string> fault;
  std::optional<std::uint64_t> max_memory;
};

using ProgressText = std::function<void(const std::string&)>;

/// Throws what load_config(), refuse_if_too_large(), verify_attention(), verify_fault() or self_test() throw.
VerifyRun carry_out(const PlannedRun& planned, const VerifyTask& task, const ProgressText& progress);

/// The run that a failure has made impossible.
VerifyRun failed_run(const PlannedRun& planned, const std::exception_ptr& failure);

/// Turns every "n/a" of a required check (with `strict`: of any check) into a failure that says so.
void require_checks(VerifyResult& result, const std::vector<std::string>& required, bool strict);

}  // namespace attn
