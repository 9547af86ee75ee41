#include "report/json_report.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "config/config_file.h"
#include "report/json_parts.h"
#include "report/tool_version.h"

namespace attn {
namespace {

Json to_json(const TraceStep& step) {
  Json json = {{"pass", step.pass},
               {"call", step.call},
               {"name", step.name},
               {"symbolic", step.symbolic},
               {"shape", step.shape},
               {"dtype", step.dtype},
               {"strides", step.strides},
               {"contiguous", step.contiguous},
               {"bytes", step.bytes},
               {"min", json_number(step.stats.min)},
               {"max", json_number(step.stats.max)},
               {"mean", json_number(step.stats.mean)},
               {"std", json_number(step.stats.std)},
               {"nan", step.stats.nan},
               {"inf", step.stats.inf}};
  if (!step.values.empty()) {
    Json& values = json["values"] = Json::array();
    for (const double value : step.values) values.push_back(json_number(value));
  }
  return json;
}

Json to_json(const ForwardCall& call) {
  Json json = {{"call", call.call},       {"first_query", call.first_query},
               {"queries", call.queries}, {"first_key", call.first_key},
               {"keys", call.keys},       {"cache_bytes", call.cache_bytes}};
  json["backend"] = call.backend.empty() ? Json(nullptr) : Json(call.backend);
  return json;
}

Json to_json(const HeatmapFile& file) {
  Json json = {{"file", file.file},
               {"shows", file.overview ? "overview" : "head"},
               {"batch", file.batch},
               {"heads", file.heads},
               {"key_heads", file.key_heads},
               {"scale", {{"low", json_number(file.scale_low)}, {"high", json_number(file.scale_high)}}},
               {"width", file.width},
               {"height", file.height}};
  if (file.cells) json["cells"] = {{"x", file.cells->x}, {"y", file.cells->y}, {"size", file.cells->size}};
  return json;
}

}  // namespace

Json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json json_number(const std::optional<double>& value) { return value ? json_number(*value) : Json(nullptr); }

Json json_tool(const std::string& kind) {
  return {
      {"schema_version", kJsonSchemaVersion}, {"kind", kind}, {"tool", "attn-cli"}, {"tool_version", tool_version()}};
}

Json json_head(const RunConfig& config, int threads, const std::string& torch_version, const std::string& kind) {
  Json json = json_tool(kind);
  json["torch_version"] = torch_version;
  json["config"] = to_json(config);
  json["source"] = config.source_name;
  json["device"] = config.device;
  json["threads"] = threads;
  return json;
}

std::string json_document(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string to_json_text(const AttentionTrace& trace) {
  Json json = json_head(trace.config, trace.threads, trace.torch_version, "trace");
  json["token_labels"] = trace.token_labels;
  Json& calls = json["calls"] = Json::array();
  for (const ForwardCall& call : trace.calls) calls.push_back(to_json(call));
  Json& steps = json["steps"] = Json::array();
  for (const TraceStep& step : trace.steps) steps.push_back(to_json(step));
  const TraceSummary& summary = trace.summary;
  json["summary"] = {{"parameters", summary.parameters},
                     {"forward_flops", summary.forward_flops},
                     {"backward_flops", summary.backward_flops},
                     {"attention_bytes", summary.attention_bytes},
                     {"attention_tensors", summary.attention_tensors},
                     {"mask_bytes", summary.mask_bytes},
                     {"built_mask_bytes", summary.built_mask_bytes},
                     {"loss", json_number(summary.loss)}};
  json["notes"] = trace.notes;
  json["seconds"] = trace.seconds;
  return json_document(json);
}

std::string to_json_text(const HeatmapIndex& index) {
  Json json = json_head(index.config, index.threads, index.torch_version, "heatmap_index");
  json["step"] = index.step;
  json["fixed_scale"] = index.fixed_scale;
  json["rows"] = {{"count", index.rows}, {"meaning", "queries"}};
  json["cols"] = {{"count", index.cols}, {"meaning", "keys"}};
  json["token_labels"] = index.token_labels;
  json["padded_keys"] = index.padded_keys;
  Json& files = json["files"] = Json::array();
  for (const HeatmapFile& file : index.files) files.push_back(to_json(file));
  return json_document(json);
}

std::string to_json_text(const RunConfig& config) { return json_document(attn::to_json(config)); }

}  // namespace attn
