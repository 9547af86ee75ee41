// attn-cli trace: what shape has every intermediate, forward and backward?
#pragma once

#include <optional>
#include <string>

#include "cli/config_options.h"

namespace attn {

struct TraceCommandOptions {
  ConfigOptions config;
  std::optional<std::string> json;  ///< a file, or "-".
  std::optional<std::string> save;  ///< a .safetensors file.
  bool values = false;
  bool no_backward = false;
};

void add_trace_command(CommandLine& line);

/// Throws ConfigError when the file to save is one that the run reads, or the one for the JSON; IoError when it cannot
/// be written; what load_config(), refuse_if_too_large() and trace_attention() throw.
ExitStatus run_trace(const TraceCommandOptions& options, Streams& streams);

}  // namespace attn
