// Two saved traces held against each other, tensor by tensor, in the order of the pipeline: where do they part?
// Called by `cli`. Works on the files' own bytes, in float64; no LibTorch.
#pragma once

#include <filesystem>
#include <optional>

#include "trace/trace_comparison.h"

namespace attn {

struct CompareOptions {
  bool exact = false;  ///< equal bits are demanded.
  std::optional<double> limit =
      std::nullopt;  ///< the largest difference allowed, times a tensor's scale; not with `exact`.
};

/// NaN equals NaN, -inf equals -inf; anything else beside them is infinitely far away.
/// Tensors that only one file has are named, not compared: a fused and a separate layer share most of their steps.
/// Throws IoError for a file that cannot be read or is damaged; ConfigError when one is no trace (it has no tensor
/// `forward.<step>`), a tensor's dtype holds no numbers, or the two share no step; ShapeError, naming all of them, when
/// shapes differ.
TraceComparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b,
                               const CompareOptions& options = {});

}  // namespace attn
