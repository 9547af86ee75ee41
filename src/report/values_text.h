// Small tensors as matrices that a person can read.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "trace/attention_trace.h"

namespace attn {

/// The numbers of a step, of its first head of its first batch entry: rows and columns that fit, and a word about what
/// is left out. A (…, T, T) step has its tokens at its rows and columns. Writes nothing for a step without numbers.
void write_values(std::ostream& out, const TraceStep& step, const std::vector<std::vector<std::string>>& token_labels);

}  // namespace attn
