// Records as text for people, in at most 120 columns. Computes nothing; writes no file.
#pragma once

#include <iosfwd>
#include <vector>

#include "report/verify_run.h"
#include "trace/attention_trace.h"

namespace attn {

struct TextOptions {
  bool verbose = false;  ///< times, and the limit and its reason of every check.
  bool values = false;   ///< the numbers of those steps that carry them.
  bool color = false;    ///< for a terminal.
};

/// Header, one line a step, forward then backward, summary.
void write_text(std::ostream& out, const AttentionTrace& trace, const TextOptions& options);

/// One line a check, details under failures, one line of verdict. Of a self-test a table of the planted faults.
void write_text(std::ostream& out, const VerifyRun& run, const TextOptions& options);

/// One of several: what is wrong in it, with `verbose` everything.
void write_block(std::ostream& out, const VerifyRun& run, const TextOptions& options);

/// After the blocks: a table with a line a run, and one line of verdict.
void write_summary(std::ostream& out, const std::vector<VerifyRun>& runs, const TextOptions& options);

}  // namespace attn
