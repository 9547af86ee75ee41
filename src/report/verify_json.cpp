// Verifications as JSON: one run, or several (json_report.h).
#include <nlohmann/json.hpp>

#include "report/json_parts.h"
#include "report/json_report.h"
#include "report/verify_run.h"

namespace attn {
namespace {

/// One letter a pair, so that a row of the map is one short word; schemas/verify.schema.json says what they mean.
char map_letter(PairState state) {
  switch (state) {
    case PairState::kVisible:
      return 'v';
    case PairState::kHidden:
      return '.';
    case PairState::kLeak:
      return 'L';
    case PairState::kHiddenWrong:
      return 'H';
    case PairState::kUnjudged:
      break;
  }
  return '?';
}

Json to_json(const DependencyMap& map) {
  Json rows = Json::array();
  for (std::int64_t query = 0; query < map.queries; ++query) {
    std::string row;
    for (std::int64_t key = 0; key < map.keys; ++key) {
      row += map_letter(map.pairs[static_cast<std::size_t>(query * map.keys + key)]);
    }
    rows.push_back(std::move(row));
  }
  return {{"queries", map.queries}, {"keys", map.keys}, {"rows", std::move(rows)}};
}

Json to_json(const CheckResult& check, const RunConfig& config) {
  Json json = {{"config", config.source_name},
               {"dtype", to_string(config.dtype)},
               {"name", check.name},
               {"status", to_string(check.status)},
               {"measured", json_number(check.measured)},
               {"limit", json_number(check.limit)},
               {"limit_reason", check.limit_reason},
               {"unit", check.unit},
               {"compared", check.compared},
               {"wrong", check.wrong},
               {"where", {{"first", check.where_first}, {"worst", check.where_worst}}},
               {"sampled", check.sampled},
               {"detail", check.detail},
               {"seconds", check.seconds}};
  if (check.map) json["map"] = to_json(*check.map);
  return json;
}

std::string status_of(const FaultVerdict& fault) {
  if (!fault.not_applicable.empty()) return "n/a";
  if (fault.caught()) return "caught";
  return fault.caught_by.empty() ? "survived" : "missed";
}

Json to_json(const FaultVerdict& fault) {
  return {{"name", fault.name},           {"status", status_of(fault)},   {"not_applicable", fault.not_applicable},
          {"caught_by", fault.caught_by}, {"missed_by", fault.missed_by}, {"measured", json_number(fault.measured)},
          {"detail", fault.detail}};
}

/// One run as a JSON value.
struct RunJson {
  const VerifyRun& run;

  Json operator()(const RunError& error) const {
    return {{"source", run.source}, {"sweep", run.sweep}, {"error", error.message}, {"exit_status", error.exit_status}};
  }

  Json operator()(const VerifyResult& result) const {
    Json json = json_head(result.config, result.threads, result.torch_version, "verify");
    json["sweep"] = run.sweep;
    json["quick"] = run.quick;
    json["fault"] = result.fault;
    json["memory_estimate"] = result.memory_estimate;
    Json& checks = json["checks"] = Json::array();
    for (const CheckResult& check : result.checks) checks.push_back(to_json(check, result.config));
    json["explained_by"] = result.explained_by;
    json["summary"] = {{"verdict", to_string(verdict(run))},
                       {"pass", result.count(CheckStatus::kPass)},
                       {"fail", result.count(CheckStatus::kFail)},
                       {"n/a", result.count(CheckStatus::kNotApplicable)},
                       {"error", result.count(CheckStatus::kError)}};
    json["notes"] = result.notes;
    return json;
  }

  Json operator()(const SelfTestResult& result) const {
    const FaultCounts counts = count_faults(result);
    Json json = json_head(result.config, result.threads, result.torch_version, "self_test");
    json["sweep"] = run.sweep;
    Json& faults = json["faults"] = Json::array();
    for (const FaultVerdict& fault : result.faults) faults.push_back(to_json(fault));
    Json& alarms = json["false_alarms"] = Json::array();
    for (const CheckResult& alarm : result.false_alarms) alarms.push_back(to_json(alarm, result.config));
    json["summary"] = {{"verdict", to_string(verdict(run))},
                       {"planted", counts.planted},
                       {"caught", counts.caught},
                       {"survived", counts.survived},
                       {"missed", counts.missed},
                       {"n/a", counts.not_applicable},
                       {"false_alarms", result.false_alarms.size()}};
    json["notes"] = result.notes;
    json["seconds"] = result.seconds;
    return json;
  }
};

}  // namespace

std::string to_json_text(const VerifyRun& run) { return json_document(std::visit(RunJson{run}, run.outcome)); }

std::string to_json_text(const std::vector<VerifyRun>& runs) {
  Json json = json_tool("verify_runs");
  Json& list = json["runs"] = Json::array();
  for (const VerifyRun& run : runs) list.push_back(std::visit(RunJson{run}, run.outcome));
  const RunSummary summary = summarize(runs);
  json["summary"] = {{"verdict", to_string(summary.worst)},
                     {"runs", summary.runs},
                     {"passed", summary.passed},
                     {"failed", summary.failed},
                     {"incomplete", summary.incomplete},
                     {"not_run", summary.not_run}};
  return json_document(json);
}

}  // namespace attn
