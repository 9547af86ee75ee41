#include "checks/check_list.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include <ATen/Parallel.h>

#include "checks/check_context.h"
#include "checks/layer_subject.h"
#include "checks/run_checks.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/experiment.h"
#include "experiment/torch_guard.h"

namespace attn {
namespace {

struct Check {
  CheckInfo info;
  CheckResult (*run)(CheckContext& context);
};

const std::vector<Check>& all_checks() {
  static const std::vector<Check> checks = {
      {{"shapes", "every step, forward and backward, has the shape its formula gives; dtype and device stay", "steps"},
       check_shapes},
      {{"finite", "no NaN and no infinity in steps, output and gradients, and no gradient that is all zero", "-"},
       check_finite},
      {{"row-sums", "the weights of each query sum to 1", "weights"}, check_row_sums},
      {{"masked-weights", "hidden keys have weight exactly 0, visible ones more", "weights"}, check_masked_weights},
      {{"first-token", "the first token sees only itself: its context is its value, exactly", "v, context"},
       check_first_token},
      {{"scale", "scores are multiplied by 1/sqrt(d_k)", "q, k, scaled scores"}, check_scale},
      {{"causality", "changing tokens from t on changes no bit of any output before t, for every t", "-"},
       check_causality},
      {{"mask-control", "with the mask off the same change does move earlier outputs", "a mask switch"},
       check_mask_control},
      {{"sdpa-forward", "context equals scaled_dot_product_attention of the same q, k, v", "q, k, v, context"},
       check_sdpa_forward},
      {{"sdpa-backward", "dq, dk, dv equal those of scaled_dot_product_attention", "q, k, v, context, gradients"},
       check_sdpa_backward},
      {{"determinism", "two runs, watched or not, and a rebuilt layer agree bit for bit", "-"}, check_determinism},
      {{"dropout", "off in eval; in training drops its share and scales the rest by 1/(1 - p)", "a train switch"},
       check_dropout},
  };
  return checks;
}

std::vector<std::string> check_names() {
  std::vector<std::string> names;
  for (const Check& check : all_checks()) names.push_back(check.info.name);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The checks that the options leave, in the order of the list.
std::vector<const Check*> chosen_checks(const VerifyOptions& options) {
  const std::vector<std::string> known = check_names();
  for (const std::vector<std::string>* names : {&options.only, &options.skip}) {
    for (const std::string& name : *names) {
      if (!contains(known, name)) throw ConfigError(unknown_word("check", name, known));
    }
  }
  std::vector<const Check*> chosen;
  for (const Check& check : all_checks()) {
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

/// The check's verdict, whatever happens in it.
CheckResult judge(const Check& check, CheckContext& context) {
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

}  // namespace

const std::vector<CheckInfo>& check_list() {
  static const std::vector<CheckInfo> infos = [] {
    std::vector<CheckInfo> list;
    for (const Check& check : all_checks()) list.push_back(check.info);
    return list;
  }();
  return infos;
}

std::vector<CheckResult> run_checks(Subject& subject, const RunConfig& run, const at::Tensor& x,
                                    const VerifyOptions& options) {
  const std::vector<const Check*> chosen = chosen_checks(options);
  CheckContext context(subject, run, x);
  std::vector<CheckResult> results;
  for (const Check* check : chosen) {
    if (options.progress) options.progress(check->info.name, results.size(), chosen.size());
    const auto start = std::chrono::steady_clock::now();
    CheckResult result = judge(*check, context);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.name = check->info.name;
    results.push_back(std::move(result));
  }
  return results;
}

VerifyResult verify_attention(const RunConfig& config, const VerifyOptions& options) {
  chosen_checks(options);  // an unknown name is refused before anything is built
  VerifyResult result;
  result.torch_version = torch_version();
  with_torch_guarded(config, [&] {
    const Experiment experiment = make_experiment(config);
    const LayerFactory factory = [](const RunConfig& run) { return make_layer(run); };
    LayerSubject subject(experiment.config, factory, experiment.layer);
    result.config = experiment.config;
    result.notes = experiment.notes;
    result.threads = at::get_num_threads();
    result.checks = run_checks(subject, experiment.config, experiment.x, options);
  });
  return result;
}

}  // namespace attn
