// Two saved traces held against each other, for people (at most 100 columns) and for scripts
// (schemas/compare.schema.json). Computes nothing.
#pragma once

#include <iosfwd>
#include <string>

#include "trace/trace_comparison.h"

namespace attn {

/// "identical", "agree within the limit" or "part at forward.scores".
std::string verdict_of(const TraceComparison& comparison);

/// The two files, a line a tensor in the order of the run, where they part, one line of verdict.
void write_text(std::ostream& out, const TraceComparison& comparison, bool color);

/// One JSON document, indented, with a newline at its end.
std::string to_json_text(const TraceComparison& comparison);

}  // namespace attn
