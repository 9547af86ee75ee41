#include "checks/findings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

/// How near to its limit: above 1 is beyond it, NaN counts as infinitely far.
double strain(const Comparison& comparison) {
  if (!std::isfinite(comparison.measured)) return std::numeric_limits<double>::infinity();
  if (comparison.measured == 0.0) return comparison.wrong > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return comparison.measured / comparison.limit.max_abs;
}

std::string with_label(const std::string& what, const std::string& place) {
  return what.empty() || place.empty() ? place : what + " " + place;
}

}  // namespace

void Findings::add(const std::string& what, const Comparison& comparison) {
  count(what, comparison);
  if (!shown_.has_value() || strain(comparison) > strain(*shown_)) show(what, comparison);
}

void Findings::add_support(const std::string& what, const Comparison& comparison) {
  const bool first_wrong = wrong_ == 0 && comparison.wrong > 0;
  count(what, comparison);
  if (first_wrong) show(what, comparison);
}

void Findings::tried(std::size_t tried, std::int64_t all, const std::string& things) {
  const std::string words = describe_sample(tried, all, things);
  if (static_cast<std::int64_t>(tried) == all) {
    note(words);
  } else {
    sampled(words);
  }
}

void Findings::sampled(const std::string& words) {
  if (words.empty()) return;
  note(words);
  samples_.push_back(words);
}

void Findings::count(const std::string& what, const Comparison& comparison) {
  compared_ += comparison.compared;
  wrong_ += comparison.wrong;
  if (comparison.non_finite > 0) {
    const std::string values = comparison.non_finite == 1 ? " value is" : " values are";
    fail(std::to_string(comparison.non_finite) + values + " not finite" + (what.empty() ? "" : " in " + what));
  }
  if (where_first_.empty()) where_first_ = with_label(what, comparison.where_first);
}

void Findings::show(const std::string& what, const Comparison& comparison) {
  shown_ = comparison;
  if (comparison.wrong > 0) where_worst_ = with_label(what, comparison.where_worst);
}

CheckResult Findings::result() const {
  CheckResult result;
  result.unit = unit_;
  result.compared = compared_;
  result.wrong = wrong_;
  if (shown_.has_value()) {
    result.measured = shown_->measured;
    result.limit = shown_->limit.max_abs;
    result.limit_reason = shown_->limit.why;
  }
  result.where_first = where_first_;
  result.where_worst = where_worst_;
  result.sampled = join(samples_);
  std::vector<std::string> sentences;
  if (compared_ == 0) sentences.emplace_back("nothing could be compared");
  constexpr std::size_t kMostFaults = 3;  // one fault can break every step after it
  for (std::size_t fault = 0; fault < std::min(faults_.size(), kMostFaults); ++fault)
    sentences.push_back(faults_[fault]);
  if (faults_.size() > kMostFaults)
    sentences.push_back("and " + std::to_string(faults_.size() - kMostFaults) + " more");
  sentences.insert(sentences.end(), notes_.begin(), notes_.end());
  result.detail = join(sentences, "; ");
  result.status = all_well() && compared_ > 0 ? CheckStatus::kPass : CheckStatus::kFail;
  return result;
}

CheckResult not_applicable(const std::string& reason) {
  CheckResult result;
  result.status = CheckStatus::kNotApplicable;
  result.detail = reason;
  return result;
}

}  // namespace attn
