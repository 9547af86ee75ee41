// One forward and backward pass of a subject, held for the checks that look at its steps. Every tensor is detached.
#pragma once

#include <optional>

#include "checks/subject.h"

namespace attn {

struct CapturedPass {
  CapturedSteps steps;
  /// Gradient of loss = sum(output * d_output) at each step, with the same axes as steps.values.
  /// A step that no gradient reaches is missing.
  std::map<Step, at::Tensor> gradients;
  /// The same in the shapes that were announced, in the order of steps.announced; undefined where none arrived.
  std::vector<std::pair<Step, at::Tensor>> announced_gradients;
  at::Tensor x_gradient, memory_gradient;                               ///< undefined: none arrived.
  std::vector<std::pair<std::string, at::Tensor>> parameters;           ///< their values.
  std::vector<std::pair<std::string, at::Tensor>> parameter_gradients;  ///< undefined: none arrived.
};

/// Absent when the subject shows no steps. Throws SubjectFailure.
std::optional<CapturedPass> capture_pass(Subject& subject, const RunConfig& run, const AttentionInput& input,
                                         const at::Tensor& d_output);

/// The step's value, or null when it was not announced. Throws SubjectFailure when it has not the expected shape, so
/// that a check never works on a tensor that is something else.
const at::Tensor* captured_step(const CapturedSteps& steps, Step step, const std::vector<std::int64_t>& expected_shape);

}  // namespace attn
