// Faults of padding, and of the queries that see no key.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "checks/faults/ruled_masks.h"

namespace attn {
namespace {

bool forgotten(const MaskedPair& pair) { return causal_allows(pair) && window_allows(pair) && own_mask_allows(pair); }

bool along_the_queries(const MaskedPair& pair) { return forgotten(pair) && pair.query_is_token; }

/// The padding of the batch item before.
template <typename Layer>
struct OfNeighbour : Layer {
  using Layer::Layer;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    return Layer::mask(place, real_keys.defined() ? real_keys.roll({1}, {0}) : real_keys);
  }
};

template <typename Layer>
struct OtherSide : Layer {
  using Layer::Layer;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    return Layer::mask(place, real_keys.defined() ? real_keys.flip({-1}) : real_keys);
  }
};

/// Queries that see no key have weights NaN, or all alike.
struct EmptyRows : AttentionCore {
  explicit EmptyRows(bool to_nan) : nan(to_nan) {}
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override {
    const at::Tensor weights = AttentionCore::normalize_scores(masked, mask, sink);
    if (!mask.has_value()) return weights;
    const double all_alike = 1.0 / static_cast<double>(masked.size(-1));
    return weights.masked_fill(mask->any(-1, /*keepdim=*/true).logical_not(), nan ? std::nan("") : all_alike);
  }
  bool nan;
};

std::string needs_padding(const RunConfig& run) { return run.padding.has_value() ? "" : "there is no padding"; }

/// Whether some key is hidden in one run and visible in the other, whose padding differs.
bool pads_otherwise(const RunConfig& run, const RunConfig& other) {
  const DeclaredPairs pairs(run), others(other);
  for (std::int64_t item = 0; item < pairs.items(); ++item) {
    for (std::int64_t query = 0; query < pairs.queries(); ++query) {
      for (std::int64_t key = 0; key < pairs.keys(); ++key) {
        if (pairs.visible(item, query, key) != others.visible(item, query, key)) return true;
      }
    }
  }
  return false;
}

std::string needs_unlike_neighbours(const RunConfig& run) {
  RunConfig other = run;
  std::rotate(other.lengths.rbegin(), other.lengths.rbegin() + 1, other.lengths.rend());
  return pads_otherwise(run, other) ? "" : "every item has the padding of the one before";
}

std::string needs_unlike_sides(const RunConfig& run) {
  RunConfig other = run;
  other.padding = run.padding == PaddingSide::kLeft ? PaddingSide::kRight : PaddingSide::kLeft;
  return pads_otherwise(run, other) ? "" : "both sides hide the same";
}

std::string needs_empty_row(const RunConfig& run) {
  return some_row(run, [](const DeclaredRow& row) { return row.keys.empty(); }) ? "" : "every query sees a key";
}

}  // namespace

std::vector<FaultEntry> padding_faults() {
  const std::vector<std::string> seen{"masked-weights"};
  return {
      ruled_fault({"padding-forgotten", "padding is not hidden", seen}, {needs_padding}, forgotten),
      ruled_fault({"padding-along-queries", "padding hides queries instead of keys", seen}, {needs_padding},
                  along_the_queries),
      {{"padding-of-neighbour", "every item has the padding of the one before", seen},
       {needs_padding, needs_unlike_neighbours},
       layer_fault<OfNeighbour>()},
      {{"padding-other-side", "padding is taken to be on the other side", seen},
       {needs_padding, needs_unlike_sides},
       layer_fault<OtherSide>()},
      {{"empty-rows-uniform", "a query that may look at no key looks at all alike", {"masked-weights", "padding"}},
       {needs_empty_row},
       core_fault<EmptyRows>(false)},
      {{"empty-rows-nan", "a query that may look at no key gets NaN", {"finite", "padding"}},
       {needs_empty_row},
       core_fault<EmptyRows>(true)},
  };
}

}  // namespace attn
