// What all checks of a run amount to: one rule for the text, the JSON and the exit status.
#pragma once

#include <string>

#include "checks/check.h"

namespace attn {

enum class Verdict {
  kPassed,          ///< no check failed or errored, at least one passed.
  kFailed,          ///< a check failed.
  kError,           ///< none failed, but one could not be carried out.
  kNothingChecked,  ///< every check was n/a, or there was none.
};

Verdict verdict(const VerifyResult& result);

/// "passed", "failed", "a check could not be carried out", "nothing could be checked".
std::string to_string(Verdict verdict);

}  // namespace attn
