// What an exception means to the user: one line and an exit status. One rule for a command that ends with it, and for
// one run of several that does.
#pragma once

#include <exception>
#include <string>

#include "cli/exit_status.h"

namespace attn {

struct Failure {
  std::string text;  ///< one line, without "attn-cli: ".
  ExitStatus status = ExitStatus::kFailure;
};

/// Of an exception that is not null.
Failure describe(const std::exception_ptr& exception);

}  // namespace attn
