// Which way up a file keeps its weights: [out, in], as PyTorch's nn.Linear and we do, or [in, out], as GPT-2 does.
// A shape that is not square shows it; for a square one nothing does but its neighbours. Private to `experiment` and
// its tests. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// A 2-D weight: the shape that the layer has, and the one in the file.
struct StoredWeight {
  std::string name;
  std::vector<std::int64_t> due;     ///< [out, in]
  std::vector<std::int64_t> stored;  ///< any shape.
};

/// What was found out.
struct StoredLayout {
  bool transposed = false;  ///< every 2-D weight of the file is [in, out].
  std::string note;         ///< for the user, when there is something to know; else empty.
};

/// `wanted` decides unless it is kAuto; then the weights that are not square do. Where all are square, nothing tells:
/// they are taken as [out, in], which is said in the note unless `is_ours` (a file that this tool wrote).
/// A shape that is neither way up says nothing: it is for the caller to refuse.
/// Throws ConfigError, naming both, when one weight is [out, in] and another [in, out].
StoredLayout find_stored_layout(const std::vector<StoredWeight>& weights, WeightsLayout wanted, bool is_ours,
                                const std::string& source_name);

}  // namespace attn
