#include "checks/check.h"

#include <algorithm>

namespace attn {

std::string to_string(CheckStatus status) {
  switch (status) {
    case CheckStatus::kPass:
      return "pass";
    case CheckStatus::kFail:
      return "fail";
    case CheckStatus::kNotApplicable:
      return "n/a";
    case CheckStatus::kError:
      return "error";
  }
  return "error";
}

std::int64_t VerifyResult::count(CheckStatus status) const {
  return std::count_if(checks.begin(), checks.end(), [&](const CheckResult& check) { return check.status == status; });
}

}  // namespace attn
