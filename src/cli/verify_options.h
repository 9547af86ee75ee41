// The options of verify: as given, then checked. An option that would be ignored is refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/config_options.h"
#include "cli/verify_runs.h"

namespace attn {

struct VerifyCommandOptions {
  std::vector<std::string> configs;  ///< files, folders of files, "-".
  ConfigOptions common;              ///< --set and --max-memory; its path stays empty.
  std::vector<std::string> sweep;    ///< "KEY=V1,V2", as given.
  std::optional<std::string> json;   ///< a file, or "-".
  std::optional<std::string> junit;  ///< a file, or "-".
  std::optional<std::string> picture;
  std::optional<std::string> fault;
  std::optional<std::string> explain;
  std::vector<std::string> check;    ///< comma lists, as given.
  std::vector<std::string> skip;     ///< comma lists, as given.
  std::vector<std::string> require;  ///< comma lists, as given.
  bool strict = false;
  bool quick = false;
  bool verbose = false;
  bool self_test = false;
  bool list_checks = false;
  bool list_faults = false;
};

/// Throws ConfigError for two options of which one would be ignored.
void refuse_contradictions(const VerifyCommandOptions& options);

/// What is to be done to each run. Throws ConfigError: an unknown check or fault, a required check that is not
/// selected, a picture of one that is not, a size that is none.
VerifyTask read_task(const VerifyCommandOptions& options);

/// Before any work is done: throws ConfigError when a file to be written is read by a run, or written twice, or a
/// picture is asked of several runs; IoError when one surely cannot be written.
void check_outputs(const VerifyCommandOptions& options, const std::vector<PlannedRun>& planned);

}  // namespace attn
