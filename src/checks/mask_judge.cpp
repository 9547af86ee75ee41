#include "checks/mask_judge.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/text.h"

namespace attn {
namespace {

/// Takes the wrong places of one key: how many, the first, the worst.
void note_wrong(Comparison& comparison, const at::Tensor& wrong, const at::Tensor& errors, std::int64_t key,
                const AxisNames& axes) {
  const std::int64_t count = wrong.sum().item<std::int64_t>();
  if (count == 0) return;
  const auto place = [&](const at::Tensor& largest) {
    std::string text = place_of(largest.argmax().item<std::int64_t>(), wrong.sizes(), axes);
    text.back() = ',';
    return text + " key " + std::to_string(key) + ")";
  };
  if (comparison.wrong == 0) comparison.where_first = place(wrong.to(at::kByte));
  const double largest = errors.max().item<double>();
  if (comparison.wrong == 0 || !(largest <= comparison.measured)) {
    comparison.measured = largest;
    comparison.where_worst = place(errors);
  }
  comparison.wrong += count;
}

}  // namespace

MaskJudge::MaskJudge(CheckContext& context)
    : T_(context.T()),
      T_k_(context.T_k()),
      declared_(context.visible().to(at::kCPU)),
      leaks_(at::zeros({T_, T_k_}, at::kBool)),
      missing_(at::zeros({T_, T_k_}, at::kBool)),
      judged_(at::zeros({T_, T_k_}, at::kBool)) {
  leak_.limit = {0.0, "a hidden key may not move one bit"};
  absent_.limit = {0.0, "every visible key moves its query"};
}

void MaskJudge::take(const KeyMoved& result, std::int64_t key, std::int64_t own_query, const at::Tensor& noticed,
                     const AxisNames& axes) {
  const at::Tensor visible = visible_to_queries(result, key);
  at::Tensor tried = at::ones_like(visible);
  if (own_query >= 0) tried.select(-1, own_query).fill_(false);
  const at::Tensor hidden = visible.logical_not().logical_and(tried);
  at::Tensor due = at::zeros_like(visible);
  if (noticed.defined()) due = visible.logical_and(tried).logical_and(noticed);
  const at::Tensor leak = result.moved.logical_and(hidden), absent = result.moved.logical_not().logical_and(due);
  non_finite_ += at::isfinite(result.change).logical_not().sum().item<std::int64_t>();
  leak_.compared += hidden.sum().item<std::int64_t>();
  absent_.compared += due.sum().item<std::int64_t>();
  note_wrong(leak_, leak, at::where(leak, result.change, -1.0), key, axes);
  note_wrong(absent_, absent, at::where(absent, 1.0, -1.0), key, axes);
  const auto over_heads = [&](const at::Tensor& wrong) { return wrong.reshape({-1, T_}).any(0); };
  leaks_.select(1, key).logical_or_(over_heads(leak));
  missing_.select(1, key).logical_or_(over_heads(absent));
  judged_.select(1, key).logical_or_(over_heads(hidden.logical_or(due)));
}

bool MaskJudge::still_unmoved(const KeyMoved& result, std::int64_t key, std::int64_t own_query,
                              const at::Tensor& noticed) const {
  at::Tensor due = visible_to_queries(result, key).logical_and(noticed);
  if (own_query >= 0) due.select(-1, own_query).fill_(false);
  return due.logical_and(result.moved.logical_not()).any().item<bool>();
}

CheckResult MaskJudge::result(Findings& findings) const {
  Comparison leak = leak_;
  if (non_finite_ > 0) {  // says nothing about hidden or visible, so nothing is right about it
    leak.wrong += non_finite_;
    leak.compared += non_finite_;
    leak.non_finite = non_finite_;
    leak.measured = std::numeric_limits<double>::quiet_NaN();
  }
  findings.add("", leak);
  findings.add_support("", absent_);
  if (leak_.wrong > 0) {
    findings.fail(std::to_string(leak_.wrong) + " pairs leak: " + leak_.where_worst + " takes part with " +
                  format_number(leak_.measured) + ", though the mask hides the key");
  }
  if (absent_.wrong > 0) {
    findings.fail(std::to_string(absent_.wrong) + " visible keys take no part, the first is " + absent_.where_first);
  }
  CheckResult result = findings.result();
  result.map = map();
  return result;
}

at::Tensor MaskJudge::visible_to_queries(const KeyMoved& result, std::int64_t key) const {
  at::Tensor visible = declared_.select(-1, key);  // (B or 1, 1, T)
  if (result.moved.dim() == 2) visible = visible.squeeze(1);
  return visible.expand(result.moved.sizes()).clone();
}

DependencyMap MaskJudge::map() const {
  DependencyMap map{T_, T_k_, {}};
  map.pairs.reserve(static_cast<std::size_t>(T_ * T_k_));
  const at::Tensor state =
      at::where(leaks_, static_cast<std::int64_t>(PairState::kLeak),
                at::where(missing_, static_cast<std::int64_t>(PairState::kHiddenWrong),
                          at::where(judged_.logical_not(), static_cast<std::int64_t>(PairState::kUnjudged),
                                    at::where(declared_.any(0).any(0), static_cast<std::int64_t>(PairState::kVisible),
                                              static_cast<std::int64_t>(PairState::kHidden)))));
  const at::Tensor numbers = state.to(at::kLong).contiguous();
  const std::int64_t* first = numbers.const_data_ptr<std::int64_t>();
  for (std::int64_t n = 0; n < numbers.numel(); ++n) map.pairs.push_back(static_cast<PairState>(first[n]));
  return map;
}

}  // namespace attn
