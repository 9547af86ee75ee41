// Records as JSON for scripts. Fields are only ever added; non-finite numbers are the strings "nan", "inf", "-inf".
#pragma once

#include <string>

#include "checks/check.h"
#include "trace/attention_trace.h"

namespace attn {

inline constexpr int kJsonSchemaVersion = 1;

/// One JSON document, indented, with a newline at its end.
std::string to_json_text(const AttentionTrace& trace);
std::string to_json_text(const VerifyResult& result);

}  // namespace attn
