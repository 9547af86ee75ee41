// Records made by hand: what a trace or a verification could have said, without running one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/verify_run.h"
#include "trace/attention_trace.h"

namespace attn::testing {

inline RunConfig small_config() {
  RunConfig config;
  config.attention.d_model = 4;
  config.attention.H = 2;
  config.B = 1;
  config.T = 3;
  config.source_name = "small.json";
  return config;
}

inline TraceStep make_step(std::string pass, std::string name, std::string symbolic, std::vector<std::int64_t> shape) {
  TraceStep step;
  step.pass = std::move(pass);
  step.name = std::move(name);
  step.symbolic = std::move(symbolic);
  step.bytes = 4;
  for (const std::int64_t size : shape) step.bytes *= size;
  step.shape = std::move(shape);
  step.strides = std::vector<std::int64_t>(step.shape.size(), 1);
  step.dtype = "float32";
  step.stats = {-1.5, 2.25, 0.125, 1.0, 0, 0};
  return step;
}

inline AttentionTrace make_trace() {
  AttentionTrace trace;
  trace.config = small_config();
  trace.torch_version = "2.13.0";
  trace.threads = 1;
  trace.steps = {make_step("forward", "x", "(B, T, d_model)", {1, 3, 4}),
                 make_step("forward", "weights", "(B, H, T, T)", {1, 2, 3, 3}),
                 make_step("backward", "weights", "(B, H, T, T)", {1, 2, 3, 3}),
                 make_step("gradient", "c_attn.weight", "(3*H*d_k, d_model)", {12, 4})};
  trace.summary.parameters = 64;
  trace.summary.forward_flops = 1234567;
  trace.summary.backward_flops = 2469134;
  trace.summary.attention_bytes = 72;
  trace.summary.attention_tensors = 2;
  trace.summary.loss = -0.75;
  return trace;
}

inline CheckResult make_check(std::string name, CheckStatus status, std::string detail = "") {
  CheckResult check;
  check.name = std::move(name);
  check.status = status;
  check.detail = std::move(detail);
  return check;
}

inline VerifyResult make_verify_result(std::vector<CheckResult> checks) {
  VerifyResult result;
  result.config = small_config();
  result.torch_version = "2.13.0";
  result.threads = 1;
  result.checks = std::move(checks);
  return result;
}

inline VerifyRun make_run(VerifyResult result, std::vector<std::string> sweep = {}) {
  const std::string source = result.config.source_name;
  return {source, std::move(sweep), false, std::move(result)};
}

inline VerifyRun make_broken_run(std::string source, std::string message, int exit_status = 2) {
  return {std::move(source), {}, false, RunError{std::move(message), exit_status}};
}

/// A fault that a check caught; with other words, one that survived, was missed or changes nothing.
inline FaultVerdict make_fault(std::string name, std::string caught_by) {
  FaultVerdict fault;
  fault.name = std::move(name);
  fault.caught_by = std::move(caught_by);
  return fault;
}

inline SelfTestResult make_self_test(std::vector<FaultVerdict> faults) {
  SelfTestResult result;
  result.config = small_config();
  result.torch_version = "2.13.0";
  result.threads = 1;
  result.faults = std::move(faults);
  return result;
}

inline VerifyRun make_self_test_run(SelfTestResult result) { return {"small.json", {}, false, std::move(result)}; }

}  // namespace attn::testing
