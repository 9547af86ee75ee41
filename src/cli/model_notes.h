// What a run says about a model's own config on standard error: what was not taken from it. `attn-cli config` says the
// whole. Called by trace, heatmap and verify.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// The lines of the config's origins that are about no key of the layer, which are all named in front ("H_kv 2 from
/// /num_key_value_heads"): which layer it is where they differ, a dtype that was not taken, keys that were not read.
/// One or two lines, the second naming the command that shows all; none for a config in this tool's own keys.
std::vector<std::string> model_notes(const RunConfig& config);

}  // namespace attn
