// attn-cli verify: is it causal, does it equal the reference, are its gradients right?
// Its options are in verify_options.h, the runs that they mean in verify_runs.h, what is only listed in verify_lists.h.
#pragma once

#include "cli/verify_options.h"

namespace attn {

void add_verify_command(CommandLine& line);

/// A single run throws what load_config(), refuse_if_too_large() and verify_attention() throw; of several each has its
/// own error in its place. Throws ConfigError for options that are unknown, or that contradict each other.
ExitStatus run_verify(const VerifyCommandOptions& options, Streams& streams);

}  // namespace attn
