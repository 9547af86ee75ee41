// Listens to one run and writes down, for each tensor, a line of the trace: forward as the layer announces its steps,
// backward as the gradients arise. Tensors are described at once and not kept, so a trace needs no more memory than the
// run itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/observer.h"
#include "config/attention_config.h"
#include "trace/attention_trace.h"

namespace attn {

/// One recorder for one forward and backward pass. It must outlive the backward pass, which calls back into it.
class TraceRecorder : public AttentionObserver {
 public:
  /// `max_values`: tensors of at most this many elements carry their numbers.
  TraceRecorder(ModuleKind module, std::int64_t max_values) : module_(module), max_values_(max_values) {}

  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  /// Writes the step down, and its gradient when that arises.
  void on_step(Step step, const at::Tensor& value) override;

  /// Writes the parameter's gradient down when it arises. Call before the forward pass.
  void watch_parameter(const std::string& name, const at::Tensor& parameter);

  /// Everything written down, in order; the recorder is empty afterwards.
  std::vector<TraceStep> take_steps();

 private:
  void record(const std::string& pass, std::string name, std::string symbolic, const at::Tensor& tensor);

  ModuleKind module_;
  std::int64_t max_values_;
  std::vector<TraceStep> steps_;
};

}  // namespace attn
