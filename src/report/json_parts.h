// What all JSON records have in common. Private to this room.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "config/config_file.h"
#include "report/json_report.h"
#include "report/tool_version.h"

namespace attn {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity, and null would lose which of them it was.
Json json_number(double value);
Json json_number(const std::optional<double>& value);  ///< null when absent.

/// Which program wrote it, and what it is.
Json json_tool(const std::string& kind);

/// What every record of one config begins with.
template <typename Record>
Json json_head(const Record& record, const std::string& kind) {
  Json json = json_tool(kind);
  json["torch_version"] = record.torch_version;
  json["config"] = to_json(record.config);
  json["source"] = record.config.source_name;
  json["device"] = record.config.device;
  json["threads"] = record.threads;
  return json;
}

/// Indented, with a newline at its end. Bytes that are not UTF-8 (paths may hold any) are replaced.
std::string json_document(const Json& json);

}  // namespace attn
