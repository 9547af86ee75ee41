// Small runs and their verdicts, for the tests of the checks.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "attention/multi_head_attention.h"
#include "checks/layer_subject.h"
#include "checks/run_checks.h"
#include "experiment/experiment.h"
#include "experiment/random_input.h"

namespace attn {

/// B = 2, T = 7, d_model = 12, H = 3, d_k = 4, causal: no two sizes agree, and 1/sqrt(d_k), 1/d_k, 1/sqrt(d_model) and
/// 1/sqrt(H) all differ.
inline RunConfig small_run() {
  RunConfig run;
  run.B = 2;
  run.T = 7;
  run.attention.d_model = 12;
  run.attention.H = 3;
  run.attention.max_seq_len = 16;
  run.seed = 5;
  run.threads = 1;
  return run;
}

inline at::Tensor input_of(const RunConfig& run) {
  return random_normal({run.B, run.T, run.attention.d_model}, run.seed, RandomStream::kInput)
      .to(scalar_type(run.dtype));
}

/// With the memory and the padding that the run has.
inline AttentionInput whole_input_of(const RunConfig& run) {
  const Experiment experiment = make_experiment(run);
  return experiment.input(experiment.x);
}

/// All checks, or those named, on the layers that `factory` makes.
inline std::vector<CheckResult> judge(const RunConfig& run, const LayerFactory& factory,
                                      const std::vector<std::string>& only = {}) {
  LayerSubject subject(run, factory);
  VerifyOptions options;
  options.only = only;
  return run_checks(subject, run, whole_input_of(run), options);
}

inline const CheckResult& find(const std::vector<CheckResult>& results, const std::string& name) {
  for (const CheckResult& result : results) {
    if (result.name == name) return result;
  }
  throw std::logic_error("no result of the check " + name);
}

/// Names of the checks with this status.
inline std::set<std::string> with_status(const std::vector<CheckResult>& results, CheckStatus status) {
  std::set<std::string> names;
  for (const CheckResult& result : results) {
    if (result.status == status) names.insert(result.name);
  }
  return names;
}

/// What a failing assertion should print.
inline std::string describe(const std::vector<CheckResult>& results) {
  std::string text;
  for (const CheckResult& result : results) {
    text += result.name + ": " + to_string(result.status) + ", " + std::to_string(result.measured.value_or(-1)) +
            " of " + std::to_string(result.limit.value_or(-1)) + ", " + result.where_first + ", " + result.detail +
            "\n";
  }
  return text;
}

}  // namespace attn
