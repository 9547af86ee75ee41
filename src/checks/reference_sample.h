// What the float64 loops work out where a whole run is too dear for them: one item, some rows, or some tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/attention_input.h"

namespace attn {

class CheckContext;

struct ReferenceSample {
  AttentionInput input;            ///< what the layer is run on: the run's, one item of it, or some tokens of one.
  std::int64_t item = 0;           ///< the number of its first item in the run's input.
  std::vector<std::int64_t> rows;  ///< the query rows of x that are judged; empty: every one.
  std::string words;               ///< "64 of 1024 rows of item 3"; empty: nothing is left out.

  std::int64_t key_len() const { return input.memory.defined() ? input.memory.size(1) : input.x.size(1); }
};

/// Everything when `budget` multiply-adds allow it. Else one item and some of its rows, or, where its keys and values
/// alone are too dear, some of its tokens as a shorter input. Random, from the run's seed.
ReferenceSample reference_sample(const CheckContext& context, double budget);

}  // namespace attn
