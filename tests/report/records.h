// Records made by hand: what a trace or a verification could have said, without running one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "checks/check.h"
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

}  // namespace attn::testing
