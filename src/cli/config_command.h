// attn-cli config: what does this config mean, with every default filled in?
#pragma once

#include "cli/config_options.h"

namespace attn {

void add_config_command(CommandLine& line);

/// Throws what load_config() throws.
ExitStatus run_config(const ConfigOptions& options, Streams& streams);

}  // namespace attn
