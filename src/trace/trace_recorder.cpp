#include "trace/trace_recorder.h"

#include <utility>

#include "trace/tensor_record.h"

namespace attn {
namespace {

/// "forward.scores", of a later call "forward.3.scores".
std::string kept_name(const std::string& pass, std::int64_t call, const std::string& name) {
  return pass + "." + (call == 0 ? "" : std::to_string(call) + ".") + name;
}

}  // namespace

void TraceRecorder::on_step(Step step, const at::Tensor& value) {
  const std::string name(step_name(step));
  const std::string symbolic = symbolic_shape(step, letters_);
  record("forward", name, symbolic, value);
  if (!value.requires_grad()) return;  // token ids, a table of sinusoids, a run without a backward pass
  value.register_hook([this, name, symbolic](const at::Tensor& gradient) {
    record("backward", name, symbolic, gradient);  // returns nothing: the gradient goes on as it is
  });
}

void TraceRecorder::watch_parameter(const std::string& name, const at::Tensor& parameter) {
  const std::string symbolic = symbolic_parameter_shape(name, letters_);
  parameter.register_hook(
      [this, name, symbolic](const at::Tensor& gradient) { record("gradient", name, symbolic, gradient); });
}

std::vector<TraceStep> TraceRecorder::take_steps() { return std::exchange(steps_, {}); }

void TraceRecorder::record(const std::string& pass, std::string name, std::string symbolic, const at::Tensor& tensor) {
  TraceStep step = describe(tensor, max_values_);
  step.pass = pass;
  step.call = call_;
  step.name = std::move(name);
  step.symbolic = std::move(symbolic);
  if (keep_tensors_) kept_.push_back(keep(kept_name(pass, call_, step.name), tensor));
  steps_.push_back(std::move(step));
}

}  // namespace attn
