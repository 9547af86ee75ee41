#include "report/verdict.h"

namespace attn {

Verdict verdict(const VerifyResult& result) {
  if (result.count(CheckStatus::kFail) > 0) return Verdict::kFailed;
  if (result.count(CheckStatus::kError) > 0) return Verdict::kError;
  if (result.count(CheckStatus::kPass) > 0) return Verdict::kPassed;
  return Verdict::kNothingChecked;
}

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kError:
      return "a check could not be carried out";
    case Verdict::kNothingChecked:
      return "nothing could be checked";
  }
  return "unknown";
}

}  // namespace attn
