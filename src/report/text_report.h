// Records as text for people, in at most 120 columns. Computes nothing; writes no file.
#pragma once

#include <iosfwd>

#include "checks/check.h"
#include "trace/attention_trace.h"

namespace attn {

struct TextOptions {
  bool verbose = false;  ///< times, and the limit and its reason of every check.
  bool values = false;   ///< the numbers of those steps that carry them.
  bool color = false;    ///< for a terminal.
};

/// Header, one line a step, forward then backward, summary.
void write_text(std::ostream& out, const AttentionTrace& trace, const TextOptions& options);

/// One line a check, details under failures, one line of verdict.
void write_text(std::ostream& out, const VerifyResult& result, const TextOptions& options);

}  // namespace attn
