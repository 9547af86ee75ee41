// A linter of masks: what the masks of a run come to, in words, and what looks like a slip. Plain data in, text out.
// The trace prints it. One of three readings of the config's masks, on purpose: the layer's (attention/mask.h) and the
// judge's (checks/) share no code with it or with each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// Lines about the whole run, all T queries at once:
///  - `mask: true keeps (the query may look); causal AND padding left AND window 4 (counts itself)`, or `mask: none,
///    every query sees every key`;
///  - with a memory, that queries and keys are of two sequences; with a cache, where the queries of each call sit;
///  - `visible keys a row: 1, 2, 3, 3`, or `8 in each of 8 rows`, once, or for each item where padding makes them
///  differ;
///  - `2 rows fully hidden (weights and context are 0): item 1, rows 0-1`;
///  - `warning: row 2 does not see itself`, `warning: no row sees key 3`, a window, prefix, stride or document that
///    hides nothing, cells that an own mask opens and causal hides.
/// Rows and keys that are padding are not warned of. Above 2^24 cells the rows are not gone through, and a line says
/// so.
std::vector<std::string> mask_words(const RunConfig& config);

/// Where T_q queries sit that look at T_k keys of the same sequence: `bottom-right aligned: query 0 sits at position
/// 3`. Empty where both are equal.
std::string alignment_words(std::int64_t T_q, std::int64_t T_k);

}  // namespace attn
