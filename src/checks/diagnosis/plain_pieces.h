// A layer that is given its tokens in pieces, with keys and values kept from call to call, by the plain formula: the
// tokens are projected as in one run; in each call its queries see the keys that are kept. Its rules can be changed one
// at a time, as those of plain_layer.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checks/reference/plain_layer.h"

namespace attn {

/// What masks the queries of the second and later calls.
enum class CallMask {
  kDeclared,
  kAtFirstKey,     ///< the first query stands at the first key that is kept: the mask's top left corner.
  kWithoutWindow,  ///< and the cache keeps every key.
  kNone,           ///< padding alone.
};

/// What happens to the kept keys and values before the second and later calls use them.
enum class KeptKeys {
  kAsTheyAre,
  kAppendedTwice,  ///< those of this call stand there twice; as many of the oldest give way.
  kLastLost,       ///< the last of the call before is 0.
};

struct PieceRules {
  CallMask mask = CallMask::kDeclared;
  KeptKeys keys = KeptKeys::kAsTheyAre;
  std::optional<std::int64_t> most_kept;  ///< keys that stay from one call to the next; absent: as the window needs.
  bool positions_restart = false;         ///< rope counts from 0 in every call.
  bool padding_kept = true;               ///< else what was padding in earlier calls counts as tokens.
};

/// `lengths` add up to T. Without memory.
PlainLayerOutput plain_pieces(const LayerInput& input, const std::vector<std::int64_t>& lengths,
                              const PieceRules& rules);

}  // namespace attn
