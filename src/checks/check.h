// What a check says: plain records, written by `report`, decided on by `cli`. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace attn {

enum class CheckStatus {
  kPass,           ///< something was compared, and it was within the limit.
  kFail,           ///< it was not, or the subject itself threw, or nothing could be compared where something was due.
  kNotApplicable,  ///< cannot say anything here; `detail` says why. Never counts as a pass.
  kError,          ///< our own part could not be carried out.
};

/// "pass", "fail", "n/a", "error".
std::string to_string(CheckStatus status);

/// What was found about one pair of query and key, over all heads and batch items.
enum class PairState : std::uint8_t {
  kVisible,      ///< declared visible, and the key moves the query's output.
  kHidden,       ///< declared hidden, and it moves no bit.
  kLeak,         ///< declared hidden, but it moves the output.
  kHiddenWrong,  ///< declared visible, but nothing moves.
  kUnjudged,     ///< not tried: T is too large to try every key.
};

/// Which key moves which query, as measured.
struct DependencyMap {
  std::int64_t queries = 0, keys = 0;
  std::vector<PairState> pairs;  ///< (queries, keys), row-major.
};

/// The verdict of one check. Every number is there so that a reader can judge the judge.
struct CheckResult {
  std::string name;  ///< kebab-case, as on the command line.
  CheckStatus status = CheckStatus::kError;
  std::optional<double> measured;  ///< the quantity compared with `limit`; may be NaN.
  std::optional<double> limit;     ///< passes when measured <= limit.
  std::string limit_reason;        ///< why this limit.
  std::string unit;                ///< what `measured` is: "largest difference", "wrong elements".
  std::int64_t compared = 0;       ///< elements compared; a pass has more than 0.
  std::int64_t wrong = 0;          ///< of them, how many were outside the limit.
  std::string where_first;         ///< "(batch 0, head 2, query 5, key 9)"; empty when nothing is wrong.
  std::string where_worst;
  std::string sampled;  ///< what was tried where not everything was: "49 of 1023 lengths"; empty: everything.
  std::string detail;   ///< one sentence: what was found, or why it does not apply.
  std::optional<DependencyMap> map;  ///< of effective-mask.
  double seconds = 0.0;
};

/// All checks of one config.
struct VerifyResult {
  RunConfig config;
  std::string torch_version;
  int threads = 0;
  std::uint64_t memory_estimate = 0;  ///< bytes that the run may take at most, worked out before it.
  std::vector<CheckResult> checks;
  std::string fault;         ///< the planted fault that was judged in place of the honest layer; empty: none.
  std::string explained_by;  ///< the known mistake that reproduces the numbers of a failing layer; empty: none does.
  std::vector<std::string> notes;  ///< for stderr.

  std::int64_t count(CheckStatus status) const;
};

}  // namespace attn
