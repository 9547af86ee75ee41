// Records as JSON for scripts. Fields are only ever added; non-finite numbers are the strings "nan", "inf", "-inf".
// What each document holds is written down in schemas/.
#pragma once

#include <string>
#include <vector>

#include "report/heatmap_index.h"
#include "report/verify_run.h"
#include "trace/attention_trace.h"

namespace attn {

inline constexpr int kJsonSchemaVersion = 1;

/// One JSON document, indented, with a newline at its end.
std::string to_json_text(const AttentionTrace& trace);
std::string to_json_text(const HeatmapIndex& index);

/// A single run of verify: a document of kind "verify" or "self_test", or, of a run that could not be carried out,
/// {"source", "error", "exit_status"}.
std::string to_json_text(const VerifyRun& run);

/// Several: kind "verify_runs", each run as above.
std::string to_json_text(const std::vector<VerifyRun>& runs);

/// The effective config: itself a config, so without version or tool.
std::string to_json_text(const RunConfig& config);

}  // namespace attn
