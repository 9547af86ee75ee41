// Faults of the step from scores to weights.
#include <ATen/ATen.h>

#include <cmath>
#include <set>
#include <utility>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "checks/reference/number_format.h"

namespace attn {
namespace {

struct SoftmaxOverQueries : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>&,
                              const std::optional<at::Tensor>&) const override {
    return at::nan_to_num(at::softmax(masked, -2), 0.0);  // a key that no query sees: a column of -inf
  }
};

struct SoftmaxOverHeads : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>&,
                              const std::optional<at::Tensor>&) const override {
    return at::nan_to_num(at::softmax(masked, 1), 0.0);
  }
};

struct MaskAfterSoftmax : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>&) const override {
    return scaled * 1;
  }
  at::Tensor normalize_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override {
    const at::Tensor weights = AttentionCore::normalize_scores(scaled, std::nullopt, sink);
    return mask.has_value() ? weights.masked_fill(mask->logical_not(), 0.0) : weights;
  }
};

/// Weights twice as large, halved where they are used.
struct WeightsAnnouncedTwice : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override {
    return AttentionCore::normalize_scores(masked, mask, sink) * 2;
  }
  at::Tensor drop_weights(const at::Tensor& weights, double dropout) const override {
    return AttentionCore::drop_weights(weights / 2, dropout);
  }
};

struct WeightsRounded : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override {
    const at::Tensor weights = AttentionCore::normalize_scores(masked, mask, sink);
    return weights.to(at::kBFloat16).to(weights.scalar_type());
  }
};

struct NanInOneWeight : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override {
    const at::Tensor weights = AttentionCore::normalize_scores(masked, mask, sink).clone(at::MemoryFormat::Contiguous);
    weights.flatten()[0] = std::nan("");
    return weights;
  }
};

/// Else rows and columns have one number each, and every softmax gives 1.
std::string needs_unlike_axes(const RunConfig& run) {
  const std::string nothing_seen = needs_visible_key(run);
  if (!nothing_seen.empty()) return nothing_seen;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;  // item and key
  const bool unlike =
      run.attention.sink || some_row(run, [&](const DeclaredRow& row) {
        return row.keys.size() > 1 || (row.keys.size() == 1 && !seen.emplace(row.item, row.keys.front()).second);
      });
  return unlike ? "" : "every query sees one key, and every key is seen by one query";
}

/// With one head the softmax of each number alone is 1.
std::string needs_two_weights(const RunConfig& run) {
  const std::string no_axis = needs_head_axis(run);
  if (!no_axis.empty()) return no_axis;
  if (run.attention.H > 1) return needs_visible_key(run);
  return needs_competing_keys(run).empty() ? "" : "H is 1 and every query sees one key at most: its weight is 1 anyway";
}

std::string needs_more_than_bfloat16(const RunConfig& run) {
  return run.dtype == Dtype::kBFloat16 ? "dtype is bfloat16 already" : "";
}

}  // namespace

std::vector<FaultEntry> softmax_faults() {
  return {
      {{"softmax-over-queries", "softmax runs over the queries", {"row-sums", "sdpa-forward"}},
       {needs_unlike_axes},
       core_fault<SoftmaxOverQueries>()},
      {{"softmax-over-heads", "softmax runs over the heads", {"row-sums", "sdpa-forward"}},
       {needs_two_weights},
       core_fault<SoftmaxOverHeads>()},
      {{"mask-after-softmax", "the mask is multiplied after softmax, rows are not normalised again", {"row-sums"}},
       {needs_half_hidden_row},
       core_fault<MaskAfterSoftmax>()},
      {{"weights-announced-twice", "the weights that are shown are twice those that are used", {"row-sums"}},
       {needs_visible_key},
       core_fault<WeightsAnnouncedTwice>()},
      {{"weights-rounded-to-bfloat16", "weights are rounded to bfloat16 and back", {"sdpa-forward"}},
       {needs_competing_keys, needs_more_than_bfloat16},
       core_fault<WeightsRounded>()},
      {{"nan-in-one-weight", "one weight is NaN", {"finite", "row-sums"}}, {}, core_fault<NanInOneWeight>()},
  };
}

}  // namespace attn
