// attn-cli config: what does this config mean, with every default filled in?
#pragma once

#include "cli/config_options.h"

namespace attn {

struct ConfigCommandOptions {
  ConfigOptions config;
  bool example = false;
};

void add_config_command(CommandLine& line);

/// Throws what load_config() throws; ConfigError for --example together with a config.
ExitStatus run_config(const ConfigCommandOptions& options, Streams& streams);

}  // namespace attn
