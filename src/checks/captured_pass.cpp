#include "checks/captured_pass.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "checks/guarded_subject.h"
#include "core/text.h"

namespace attn {
namespace {

/// Gradients of sum(output * d_output) at each of `targets`; undefined where none arrives.
std::vector<at::Tensor> gradients_at(const std::vector<at::Tensor>& targets, const at::Tensor& output,
                                     const at::Tensor& d_output) {
  std::vector<at::Tensor> reachable;
  for (const at::Tensor& target : targets) {
    if (target.requires_grad()) reachable.push_back(target);
  }
  std::vector<at::Tensor> gradients(targets.size());
  if (reachable.empty() || !output.requires_grad()) return gradients;
  const std::vector<at::Tensor> found =
      torch::autograd::grad({output}, reachable, {d_output}, /*retain_graph=*/false, /*create_graph=*/false,
                            /*allow_unused=*/true);
  std::size_t next = 0;
  for (std::size_t index = 0; index < targets.size(); ++index) {
    if (targets[index].requires_grad()) gradients[index] = found[next++];
  }
  return gradients;
}

}  // namespace

std::optional<CapturedPass> capture_pass(Subject& subject, const RunConfig& run, const AttentionInput& input,
                                         const at::Tensor& d_output) {
  const at::AutoGradMode with_gradients(true);
  AttentionInput leaves = input;
  leaves.x = input.x.detach().clone().requires_grad_(true);
  const bool has_memory = input.memory.defined();
  if (has_memory) leaves.memory = input.memory.detach().clone().requires_grad_(true);
  std::optional<CapturedSteps> steps = subject.forward_with_steps(leaves);
  if (!steps.has_value()) return std::nullopt;
  const auto parameters = subject.named_parameters();

  std::vector<at::Tensor> targets{leaves.x};
  if (has_memory) targets.push_back(leaves.memory);
  for (const auto& [step, value] : steps->announced) targets.push_back(value);
  for (const auto& [name, value] : parameters) targets.push_back(value);
  std::vector<at::Tensor> gradients;
  run_subject_code(run, [&] { gradients = gradients_at(targets, steps->output, d_output); });

  CapturedPass pass;
  pass.x_gradient = gradients.front();
  std::size_t next = 1;
  if (has_memory) pass.memory_gradient = gradients[next++];
  for (const auto& [step, value] : steps->announced) {
    const at::Tensor& gradient = gradients[next++];
    pass.announced_gradients.emplace_back(step, gradient);
    pass.steps.announced.emplace_back(step, value.detach());
    if (!gradient.defined()) continue;
    const bool head_axis_added = steps->values.at(step).dim() == gradient.dim() + 1;
    pass.gradients[step] = head_axis_added ? gradient.unsqueeze(1) : gradient;
  }
  for (const auto& [name, value] : parameters) {
    pass.parameters.emplace_back(name, value.detach());
    pass.parameter_gradients.emplace_back(name, gradients[next++]);
  }
  for (const auto& [step, value] : steps->values) pass.steps.values[step] = value.detach();
  pass.steps.output = steps->output.detach();
  return pass;
}

const at::Tensor* captured_step(const CapturedSteps& steps, Step step,
                                const std::vector<std::int64_t>& expected_shape) {
  const auto found = steps.values.find(step);
  if (found == steps.values.end()) return nullptr;
  if (found->second.sizes() != at::IntArrayRef(expected_shape)) {
    throw SubjectFailure(std::string(step_name(step)) + ": expected shape " + format_shape(expected_shape) + ", got " +
                         format_shape(found->second.sizes().vec()));
  }
  return &found->second;
}

}  // namespace attn
