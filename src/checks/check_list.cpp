#include "checks/check_list.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include <ATen/Parallel.h>

#include "checks/check_context.h"
#include "checks/check_table.h"
#include "checks/diagnosis/diagnosis.h"
#include "checks/layer_subject.h"
#include "checks/run_checks.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/experiment.h"
#include "experiment/memory_estimate.h"
#include "experiment/torch_guard.h"

namespace attn {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The checks that the options leave, in the order of the list.
std::vector<const CheckEntry*> chosen_checks(const VerifyOptions& options) {
  for (const std::vector<std::string>* names : {&options.only, &options.skip}) {
    for (const std::string& name : *names) require_check(name);
  }
  std::vector<const CheckEntry*> chosen;
  for (const CheckEntry& check : check_table()) {
    const bool wanted = options.only.empty() || contains(options.only, check.info.name);
    if (wanted && !contains(options.skip, check.info.name)) chosen.push_back(&check);
  }
  if (chosen.empty()) throw ConfigError("no check is left by the checks chosen and skipped");
  return chosen;
}

CheckResult with_status(CheckStatus status, const std::string& detail) {
  CheckResult result;
  result.status = status;
  result.detail = detail;
  return result;
}

/// The check's status, numbers and words, whatever happens in it.
CheckResult judge(const CheckEntry& check, CheckContext& context) {
  if (const std::string why = check.ruled_out(context.run()); !why.empty()) return not_applicable(why);
  CheckResult result;
  try {
    with_torch_guarded(context.run(), [&] {
      context.subject().train(false);
      result = check.run(context);
      context.subject().train(false);
    });
  } catch (const SubjectFailure& failure) {
    result = with_status(CheckStatus::kFail, failure.what());
  } catch (const std::exception& error) {
    result = with_status(CheckStatus::kError, error.what());
  }
  return result;
}

/// `honest`: the experiment's own layer is judged, so that it is built and its weights are read only once.
VerifyResult verify_made_layer(const RunConfig& config, const LayerFactory& factory, bool honest,
                               const VerifyOptions& options) {
  chosen_checks(options);  // an unknown name is refused before anything is built
  VerifyResult result;
  result.torch_version = torch_version();
  with_torch_guarded(config, [&] {
    const Experiment experiment = make_experiment(config);
    LayerSubject subject(experiment.config, factory, honest ? experiment.layer : nullptr);
    result.config = experiment.config;
    result.notes = experiment.notes;
    result.threads = at::get_num_threads();
    result.memory_estimate = estimate_memory(experiment.config, Purpose::kVerify).bytes;
    result.checks = run_checks(subject, experiment.config, experiment.input(experiment.x), options);
    if (result.count(CheckStatus::kFail) == 0) return;
    CheckContext context(subject, experiment.config, experiment.input(experiment.x));
    result.explained_by = explain_failure(context);
  });
  return result;
}

}  // namespace

const std::vector<CheckInfo>& check_list() {
  static const std::vector<CheckInfo> infos = [] {
    std::vector<CheckInfo> list;
    for (const CheckEntry& check : check_table()) list.push_back(check.info);
    return list;
  }();
  return infos;
}

std::vector<std::string> check_names() {
  std::vector<std::string> names;
  for (const CheckEntry& check : check_table()) names.push_back(check.info.name);
  return names;
}

void require_check(const std::string& name) {
  const std::vector<std::string> known = check_names();
  if (!contains(known, name)) throw ConfigError(unknown_word("check", name, known));
}

std::string why_ruled_out(const std::string& check, const RunConfig& config) {
  require_check(check);
  const auto is_named = [&](const CheckEntry& entry) { return entry.info.name == check; };
  return std::find_if(check_table().begin(), check_table().end(), is_named)->ruled_out(config);
}

CheckResult run_check(const CheckEntry& check, CheckContext& context) {
  const auto start = std::chrono::steady_clock::now();
  CheckResult result = judge(check, context);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.name = check.info.name;
  return result;
}

std::vector<CheckResult> run_checks(Subject& subject, const RunConfig& run, const AttentionInput& input,
                                    const VerifyOptions& options) {
  const std::vector<const CheckEntry*> chosen = chosen_checks(options);
  CheckContext context(subject, run, input, options.quick);
  std::vector<CheckResult> results;
  for (const CheckEntry* check : chosen) {
    if (options.progress) options.progress(check->info.name, results.size(), chosen.size());
    results.push_back(run_check(*check, context));
  }
  return results;
}

VerifyResult verify_layer(const RunConfig& config, const LayerFactory& factory, const VerifyOptions& options) {
  return verify_made_layer(config, factory, /*honest=*/false, options);
}

VerifyResult verify_attention(const RunConfig& config, const VerifyOptions& options) {
  const LayerFactory factory = [](const RunConfig& run) { return make_layer(run); };
  return verify_made_layer(config, factory, /*honest=*/true, options);
}

}  // namespace attn
