// Small tensors as matrices that a person can read.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "trace/attention_trace.h"

namespace attn {

/// The numbers of a step: one matrix for each leading index (batch, head), the first few of them, rows and columns
/// that fit; what is left out is said. A (…, T, T) step has its tokens at its rows and columns.
/// Writes nothing for a step that carries no numbers.
void write_values(std::ostream& out, const TraceStep& step, const std::vector<std::vector<std::string>>& token_labels);

}  // namespace attn
