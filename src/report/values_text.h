// Small tensors as matrices that a person can read.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "trace/attention_trace.h"

namespace attn {

/// What stands along rows or columns: the words of a sequence, or positions, from the one of the first on.
struct ValueAxis {
  const std::vector<std::string>* labels = nullptr;  ///< of the whole sequence; null: positions. Not owned.
  std::int64_t first = 0;                            ///< position of row or column 0.
};

struct ValuePlaces {
  ValueAxis rows, cols;
  bool is_map = false;  ///< queries down, keys across.
};

/// Of the first batch item: which tokens the rows, and of a map the columns, of this step belong to. Points into the
/// trace.
ValuePlaces value_places(const AttentionTrace& trace, const TraceStep& step);

/// The numbers of a step, of its first head of its first batch entry: rows and columns that fit, and a word about what
/// is left out. Writes nothing for a step without numbers.
void write_values(std::ostream& out, const TraceStep& step, const ValuePlaces& places);

}  // namespace attn
