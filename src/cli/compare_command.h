// attn-cli compare: at which step do two saved traces part?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace attn {

struct CompareCommandOptions {
  std::vector<std::string> files;    ///< two.
  std::optional<std::string> json;   ///< a file, or "-".
  std::optional<std::string> limit;  ///< a number.
  bool exact = false;
};

void add_compare_command(CommandLine& line);

/// Throws ConfigError for other than two files, a limit that is no number of at least 0, or --limit with --exact; what
/// compare_traces() throws. kCheckFailed when the two part.
ExitStatus run_compare(const CompareCommandOptions& options, Streams& streams);

}  // namespace attn
