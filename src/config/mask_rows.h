// Which keys each row of a run sees, counted: for the words of mask_words.h only. Private to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// What one item's rows and keys come to.
struct ItemRows {
  std::vector<std::int64_t> visible;         ///< keys of each row.
  std::vector<std::int64_t> hidden;          ///< rows without any.
  std::vector<std::int64_t> without_itself;  ///< rows of tokens that see others, but not themselves.
  std::vector<std::int64_t> unseen;          ///< keys of tokens that no row sees.
};

/// Of item b, all T rows at once, by plain ifs.
ItemRows count_rows(const RunConfig& config, std::int64_t b);

/// How many cells an own mask opens right of the diagonal.
std::size_t count_later_keys(const RowsMask& mask);

}  // namespace attn
