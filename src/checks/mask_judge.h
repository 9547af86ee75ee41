// Counts which key moves which query against the declared mask, both ways, and keeps the map of all heads and items.
// What effective-mask measures with; see effective_mask_check.cpp.
#pragma once

#include <cstdint>

#include "checks/check_context.h"

namespace attn {

/// What one key did.
struct KeyMoved {
  at::Tensor moved;   ///< bool: (B, H, T) of the core, (B, T) of the whole layer: it takes part in this query's result.
  at::Tensor change;  ///< float64, the same shape: how much of it is there at most.
};

class MaskJudge {
 public:
  explicit MaskJudge(CheckContext& context);

  /// Judges one key. `axes` are those of the result's tensors, the last one is the query. `own_query`: that of the same
  /// token, which is not judged; -1: all are. `noticed`: bool, broadcastable to the result, where a visible key must
  /// take part; undefined: that is not judged.
  void take(const KeyMoved& result, std::int64_t key, std::int64_t own_query, const at::Tensor& noticed,
            const AxisNames& axes);

  /// True where a visible key must take part but nothing moved: worth a larger change before it is judged.
  bool still_unmoved(const KeyMoved& result, std::int64_t key, std::int64_t own_query, const at::Tensor& noticed) const;

  /// The verdict with the map.
  CheckResult result(Findings& findings) const;

 private:
  at::Tensor visible_to_queries(const KeyMoved& result, std::int64_t key) const;  // (B, H, T) or (B, T), as the result
  DependencyMap map() const;

  std::int64_t T_, T_k_;
  at::Tensor declared_;                  ///< (B or 1, 1, T, T_k) bool
  at::Tensor leaks_, missing_, judged_;  ///< (T, T_k) bool
  Comparison leak_, absent_;
  std::int64_t non_finite_ = 0;
};

}  // namespace attn
