// Items of different lengths, filled up to one length.
#pragma once

#include <cstdint>

#include "config/run_config.h"
#include "config/tokenizer.h"

namespace attn {

inline constexpr std::int64_t kPaddingId = 0;          ///< any id will do: no query may look there.
inline constexpr const char* kPaddingLabel = "<pad>";  ///< where a token's word would stand.

/// The same tokens, each item filled up to `T` on this side with kPaddingId and kPaddingLabel; labels may be missing
/// altogether. Throws std::logic_error for an item longer than T.
Tokens padded_to(Tokens tokens, std::int64_t T, PaddingSide side);

}  // namespace attn
