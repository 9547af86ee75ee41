// Collects what one check finds and turns it into its verdict by the rules of every check: a pass needs something that
// was compared, and nothing that is wrong.
#pragma once

#include <string>
#include <vector>

#include "checks/check.h"
#include "checks/comparison.h"

namespace attn {

class Findings {
 public:
  /// `unit`: what is measured, e.g. "largest difference".
  explicit Findings(std::string unit) : unit_(std::move(unit)) {}

  /// One comparison; `what` says of what ("dq, flash, strided"), empty when the check makes only one.
  void add(const std::string& what, const Comparison& comparison);

  /// The same for a comparison that only supports the main ones: the report shows its numbers only when it is wrong and
  /// nothing before it was.
  void add_support(const std::string& what, const Comparison& comparison);

  /// Something that is wrong without a number.
  void fail(const std::string& sentence) { faults_.push_back(sentence); }

  /// What a reader should know when all is well, and besides the faults when it is not.
  void note(const std::string& sentence) { notes_.push_back(sentence); }

  /// How many of the things that there are were tried: a note, and, where it was a sample, never left unsaid.
  void tried(std::size_t tried, std::int64_t all, const std::string& things);

  /// The same where the words are there already; empty: everything was tried.
  void sampled(const std::string& words);

  bool all_well() const { return faults_.empty() && wrong_ == 0; }

  /// The verdict: name and seconds are filled in by the runner.
  CheckResult result() const;

 private:
  void count(const std::string& what, const Comparison& comparison);
  void show(const std::string& what, const Comparison& comparison);

  std::string unit_;
  std::vector<std::string> faults_, notes_, samples_;
  std::optional<Comparison> shown_;  ///< nearest to its limit, or furthest beyond it.
  std::int64_t compared_ = 0, wrong_ = 0;
  std::string where_first_, where_worst_;
};

/// The check cannot say anything here; `reason` tells why.
CheckResult not_applicable(const std::string& reason);

}  // namespace attn
