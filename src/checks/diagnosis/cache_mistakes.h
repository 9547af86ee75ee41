// What people get wrong about keys and values that are kept from call to call: a run of all tokens at once shows none
// of it.
#pragma once

#include <string>
#include <vector>

#include "checks/diagnosis/plain_pieces.h"

namespace attn {

struct CacheMistake {
  std::string words;  ///< "rope counts positions from 0 in every call"
  PieceRules rules;
};

/// Those that the config can have; some may change nothing in a run that is too short for them.
std::vector<CacheMistake> known_cache_mistakes(const LayerInput& input);

}  // namespace attn
