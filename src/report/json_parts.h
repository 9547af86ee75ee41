// What all JSON records have in common. Private to this room.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "config/run_config.h"

namespace attn {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity, and null would lose which of them it was.
Json json_number(double value);
Json json_number(const std::optional<double>& value);  ///< null when absent.

/// Which program wrote it, and what it is.
Json json_tool(const std::string& kind);

/// What every record of one config begins with.
Json json_head(const RunConfig& config, int threads, const std::string& torch_version, const std::string& kind);

/// Indented, with a newline at its end. Bytes that are not UTF-8 (paths may hold any) are replaced.
std::string json_document(const Json& json);

}  // namespace attn
