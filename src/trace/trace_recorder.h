// Listens to one run and writes down, for each tensor, a line of the trace: forward as the layer announces its steps,
// backward as the gradients arise. Tensors are described at once and let go, so a trace needs no more memory than the
// run itself, unless their bytes are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/observer.h"
#include "trace/attention_trace.h"
#include "trace/symbolic_shapes.h"

namespace attn {

/// One recorder for all forward calls of a run and its backward pass. It must outlive the backward pass, which calls
/// back into it.
class TraceRecorder : public AttentionObserver {
 public:
  /// `max_values`: tensors of at most this many elements carry their numbers.
  /// `keep_tensors`: the bytes of every tensor are kept too.
  TraceRecorder(const ShapeLetters& letters, std::int64_t max_values, bool keep_tensors = false)
      : letters_(letters), max_values_(max_values), keep_tensors_(keep_tensors) {}

  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  /// Every step from now on belongs to this forward call.
  void begin_call(std::int64_t call) { call_ = call; }

  /// Writes the step down, and its gradient when that arises.
  void on_step(Step step, const at::Tensor& value) override;

  /// Writes the parameter's gradient down when it arises. Call before the forward pass.
  void watch_parameter(const std::string& name, const at::Tensor& parameter);

  /// Everything written down, in order; the recorder is empty afterwards.
  std::vector<TraceStep> take_steps();
  std::vector<KeptTensor> take_kept() { return std::exchange(kept_, {}); }

 private:
  void record(const std::string& pass, std::string name, std::string symbolic, const at::Tensor& tensor);

  ShapeLetters letters_;
  std::int64_t max_values_;
  bool keep_tensors_;
  std::int64_t call_ = 0;
  std::vector<TraceStep> steps_;
  std::vector<KeptTensor> kept_;
};

}  // namespace attn
