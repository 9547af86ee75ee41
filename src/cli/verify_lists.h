// What verify can tell about its checks and planted faults without running any of them.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "config/run_config.h"

namespace attn {

/// One check a line, its name first, for people and for scripts; with a config those that it does not rule out.
void print_check_list(std::ostream& out, const std::optional<RunConfig>& config);

/// One planted fault a line, in the same way.
void print_fault_list(std::ostream& out, const std::optional<RunConfig>& config);

/// All that is known about a check. Throws ConfigError for an unknown name.
void explain_check(std::ostream& out, const std::string& name);

}  // namespace attn
