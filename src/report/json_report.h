// Records as JSON for scripts. Fields are only ever added; non-finite numbers are the strings "nan", "inf", "-inf".
// What each document holds is written down in schemas/.
#pragma once

#include <string>

#include "checks/check.h"
#include "report/heatmap_index.h"
#include "trace/attention_trace.h"

namespace attn {

inline constexpr int kJsonSchemaVersion = 1;

/// One JSON document, indented, with a newline at its end.
std::string to_json_text(const AttentionTrace& trace);
std::string to_json_text(const VerifyResult& result);
std::string to_json_text(const HeatmapIndex& index);

/// The effective config: itself a config, so without version or tool.
std::string to_json_text(const RunConfig& config);

}  // namespace attn
