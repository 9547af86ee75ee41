// Running the list of checks on one subject. verify_attention() does it for a config's layer; tests and planted faults
// do it for theirs.
#pragma once

#include <vector>

#include "checks/check_list.h"
#include "checks/layer_subject.h"
#include "checks/subject.h"

namespace attn {

/// Judges `subject` on an input that is on the run's device and in its dtype. A check that cannot be carried
/// out becomes an `error`, one whose subject throws a `fail`; neither stops the others. Leaves the subject in eval
/// mode. Throws ConfigError for an unknown name in `options`.
std::vector<CheckResult> run_checks(Subject& subject, const RunConfig& run, const AttentionInput& input,
                                    const VerifyOptions& options = {});

/// Judges the layer that `factory` makes of the config, on the config's input, and looks for the known mistake behind
/// a failure. Throws what make_experiment() throws.
VerifyResult verify_layer(const RunConfig& config, const LayerFactory& factory, const VerifyOptions& options = {});

}  // namespace attn
