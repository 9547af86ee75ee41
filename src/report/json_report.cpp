#include "report/json_report.h"

#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "config/config_file.h"
#include "report/tool_version.h"
#include "report/verdict.h"

namespace attn {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity, and null would lose which of them it was.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

/// What every record begins with.
template <typename Record>
Json head(const Record& record, const std::string& kind) {
  return {{"schema_version", kJsonSchemaVersion},
          {"kind", kind},
          {"tool", "attn-cli"},
          {"tool_version", tool_version()},
          {"torch_version", record.torch_version},
          {"config", to_json(record.config)},
          {"source", record.config.source_name},
          {"device", record.config.device},
          {"threads", record.threads}};
}

/// Indented, a list of numbers or words on one line. Bytes that are not UTF-8 (paths may hold any) are replaced.
std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

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
               {"min", number(step.stats.min)},
               {"max", number(step.stats.max)},
               {"mean", number(step.stats.mean)},
               {"std", number(step.stats.std)},
               {"nan", step.stats.nan},
               {"inf", step.stats.inf}};
  if (!step.values.empty()) {
    Json& values = json["values"] = Json::array();
    for (const double value : step.values) values.push_back(number(value));
  }
  return json;
}

Json to_json(const CheckResult& check, const RunConfig& config) {
  return {{"config", config.source_name},
          {"dtype", to_string(config.dtype)},
          {"name", check.name},
          {"status", to_string(check.status)},
          {"measured", number(check.measured)},
          {"limit", number(check.limit)},
          {"limit_reason", check.limit_reason},
          {"unit", check.unit},
          {"compared", check.compared},
          {"wrong", check.wrong},
          {"where", {{"first", check.where_first}, {"worst", check.where_worst}}},
          {"detail", check.detail},
          {"seconds", check.seconds}};
}

Json to_json(const HeatmapFile& file) {
  Json json = {{"file", file.file},
               {"shows", file.overview ? "overview" : "head"},
               {"batch", file.batch},
               {"heads", file.heads},
               {"scale", {{"low", number(file.scale_low)}, {"high", number(file.scale_high)}}},
               {"width", file.width},
               {"height", file.height}};
  if (file.cells) json["cells"] = {{"x", file.cells->x}, {"y", file.cells->y}, {"size", file.cells->size}};
  return json;
}

}  // namespace

std::string to_json_text(const AttentionTrace& trace) {
  Json json = head(trace, "trace");
  json["token_labels"] = trace.token_labels;
  Json& steps = json["steps"] = Json::array();
  for (const TraceStep& step : trace.steps) steps.push_back(to_json(step));
  const TraceSummary& summary = trace.summary;
  json["summary"] = {{"parameters", summary.parameters},
                     {"forward_flops", summary.forward_flops},
                     {"backward_flops", summary.backward_flops},
                     {"attention_bytes", summary.attention_bytes},
                     {"attention_tensors", summary.attention_tensors},
                     {"mask_bytes", summary.mask_bytes},
                     {"loss", number(summary.loss)}};
  json["notes"] = trace.notes;
  json["seconds"] = trace.seconds;
  return dump(json);
}

std::string to_json_text(const VerifyResult& result) {
  Json json = head(result, "verify");
  Json& checks = json["checks"] = Json::array();
  for (const CheckResult& check : result.checks) checks.push_back(to_json(check, result.config));
  json["summary"] = {{"verdict", to_string(verdict(result))},
                     {"pass", result.count(CheckStatus::kPass)},
                     {"fail", result.count(CheckStatus::kFail)},
                     {"n/a", result.count(CheckStatus::kNotApplicable)},
                     {"error", result.count(CheckStatus::kError)}};
  json["notes"] = result.notes;
  return dump(json);
}

std::string to_json_text(const HeatmapIndex& index) {
  Json json = head(index, "heatmap_index");
  json["step"] = index.step;
  json["fixed_scale"] = index.fixed_scale;
  json["rows"] = {{"count", index.rows}, {"meaning", "queries"}};
  json["cols"] = {{"count", index.cols}, {"meaning", "keys"}};
  json["token_labels"] = index.token_labels;
  Json& files = json["files"] = Json::array();
  for (const HeatmapFile& file : index.files) files.push_back(to_json(file));
  return dump(json);
}

std::string to_json_text(const RunConfig& config) { return dump(attn::to_json(config)); }

}  // namespace attn
