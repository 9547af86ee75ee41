// Every planted fault of one config against the checks, and the honest layer beside them.
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "checks/check_context.h"
#include "checks/check_table.h"
#include "checks/faults/fault.h"
#include "experiment/torch_guard.h"

namespace attn {
namespace {

/// Check by name: how it ended on the honest layer.
using HonestStatuses = std::map<std::string, CheckStatus>;

void judge_honest(SelfTestResult& result, const Experiment& experiment, HonestStatuses& statuses) {
  LayerSubject subject(
      experiment.config, [](const RunConfig& run) { return make_layer(run); }, experiment.layer);
  CheckContext context(subject, experiment.config, experiment.input(experiment.x));
  for (const CheckEntry& check : check_table()) {
    CheckResult verdict = run_check(check, context);
    statuses[verdict.name] = verdict.status;
    const bool alarm = verdict.status == CheckStatus::kFail || verdict.status == CheckStatus::kError;
    if (alarm) result.false_alarms.push_back(std::move(verdict));
  }
}

/// Scores so large that softmax gives one key everything: weights are 0 or 1, and a fault may leave what the check that
/// it names looks at as it was. Then it is enough that any check catches it.
bool is_saturated(const AttentionConfig& layer) {
  constexpr double kSaturated = 32.0;
  return std::min(usual_score(layer), layer.softcap.value_or(kSaturated)) >= kSaturated;
}

/// Runs the checks up to the first that fails, and of the others those that must.
void judge_fault(FaultVerdict& verdict, const FaultEntry& fault, const Experiment& experiment,
                 const HonestStatuses& honest) {
  LayerSubject subject(experiment.config, fault.plant());
  CheckContext context(subject, experiment.config, experiment.input(experiment.x));
  std::vector<std::string> named = fault.info.caught_by;
  if (is_saturated(experiment.config.attention)) named.clear();
  for (const CheckEntry& check : check_table()) {
    const std::string& name = check.info.name;
    const bool must_catch =
        std::find(named.begin(), named.end(), name) != named.end() && honest.at(name) != CheckStatus::kNotApplicable;
    if (!verdict.caught_by.empty() && !must_catch) continue;
    const CheckResult found = run_check(check, context);
    const bool caught = found.status == CheckStatus::kFail;
    if (must_catch && !caught) verdict.missed_by.push_back(name);
    if (!caught || !verdict.caught_by.empty()) continue;
    verdict.caught_by = name;
    verdict.measured = found.measured;
    verdict.detail = found.detail;
  }
}

}  // namespace

bool SelfTestResult::passed() const {
  bool planted = false, all_caught = true;
  for (const FaultVerdict& fault : faults) {
    if (!fault.not_applicable.empty()) continue;
    planted = true;
    all_caught = all_caught && fault.caught();
  }
  return planted && all_caught && false_alarms.empty();
}

SelfTestResult self_test(
    const RunConfig& config,
    const std::function<void(const std::string& name, std::size_t index, std::size_t total)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  SelfTestResult result;
  result.torch_version = torch_version();
  with_torch_guarded(config, [&] {
    const Experiment experiment = make_experiment(config);
    result.config = experiment.config;
    result.notes = experiment.notes;
    result.threads = at::get_num_threads();
    HonestStatuses honest;
    judge_honest(result, experiment, honest);
    for (const FaultEntry& fault : fault_table()) {
      if (progress) progress(fault.info.name, result.faults.size(), fault_table().size());
      FaultVerdict& verdict = result.faults.emplace_back();
      verdict.name = fault.info.name;
      verdict.not_applicable = why_not_applicable(fault.info.name, experiment.config).value_or("");
      if (verdict.not_applicable.empty()) judge_fault(verdict, fault, experiment, honest);
    }
  });
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace attn
