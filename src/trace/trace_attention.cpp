#include "trace/trace_attention.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <utility>

#include "attention/input_embedding.h"
#include "attention/multi_head_attention.h"
#include "experiment/experiment.h"
#include "experiment/random_input.h"
#include "experiment/torch_guard.h"
#include "trace/attention_maps.h"
#include "trace/tensor_record.h"
#include "trace/trace_recorder.h"

namespace attn {
namespace {

/// The parameters of the layer, then of its embedding, by the names that they have in a weights file.
std::vector<std::pair<std::string, at::Tensor>> named_parameters(const Experiment& experiment) {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& item : experiment.layer->named_parameters()) parameters.emplace_back(item.key(), item.value());
  if (experiment.embedding == nullptr) return parameters;
  for (const auto& item : experiment.embedding->named_parameters()) parameters.emplace_back(item.key(), item.value());
  return parameters;
}

/// The layer's input, announced as it comes about: tokens through the embedding, so that the gradient reaches its
/// parameters, or x itself, made a leaf so that it has a gradient.
at::Tensor make_x(const Experiment& experiment, TraceRecorder& recorder) {
  if (experiment.tokens.has_value()) return experiment.embedding->forward(*experiment.tokens, &recorder);
  return experiment.x.detach().requires_grad_(at::GradMode::is_enabled());
}

/// sum(output * dy) in float64, whatever the layer's dtype: a sum of many float16 numbers would overflow.
at::Tensor loss_of(const at::Tensor& output, const RunConfig& config) {
  const at::Tensor dy = random_normal(output.sizes().vec(), config.seed, RandomStream::kGradient);
  return (output.to(at::kDouble) * dy.to(output.device())).sum();
}

/// Of one pass: a product of (m, k) and (k, n) takes 2 m k n.
///   projections to q, k, v    2 * B*T * d_model * 3*H*d_k
///   scores, and context       2 * B*H * T*T * d_k each
///   output projection         2 * B*T * H*d_k * d_model
/// Masked scores are computed too, so they count.
std::int64_t forward_flops(const RunConfig& config) {
  const AttentionConfig& layer = config.attention;
  const std::int64_t projections = 2 * config.B * config.T * layer.d_model * 4 * layer.heads_width();
  const std::int64_t attention = 2 * (2 * config.B * layer.H * config.T * config.T * layer.d_k());
  return projections + attention;
}

TraceSummary summarize(const Experiment& experiment, const std::vector<TraceStep>& steps, bool backward) {
  const RunConfig& config = experiment.config;
  TraceSummary summary;
  for (const auto& [name, parameter] : named_parameters(experiment)) summary.parameters += parameter.numel();
  summary.forward_flops = forward_flops(config);
  // Each product's backward pass is two products of its size: one for the gradient of either factor.
  if (backward) summary.backward_flops = 2 * summary.forward_flops;
  for (const TraceStep& step : steps) {
    const std::optional<Step> found = find_step(step.name);
    if (!found.has_value() || !is_attention_map(*found)) continue;  // a parameter's gradient, or another shape
    summary.attention_bytes = step.bytes;
    ++summary.attention_tensors;
  }
  for (const at::Tensor& buffer : experiment.layer->buffers()) {
    summary.mask_bytes += buffer.numel() * static_cast<std::int64_t>(buffer.element_size());
  }
  return summary;
}

AttentionTrace run_traced(const RunConfig& config, const TraceOptions& options) {
  Experiment experiment = make_experiment(config);
  experiment.layer->train(config.mode == Mode::kTrain);
  TraceRecorder recorder(config.attention.module, options.max_values, options.keep_tensors);

  AttentionTrace trace;
  trace.config = config;
  trace.torch_version = torch_version();
  trace.threads = at::get_num_threads();
  double loss = 0.0;
  {
    const at::AutoGradMode grad_mode(options.backward);
    if (options.backward) {
      for (const auto& [name, parameter] : named_parameters(experiment)) recorder.watch_parameter(name, parameter);
    }
    const at::Tensor x = make_x(experiment, recorder);
    const at::Tensor output = experiment.layer->forward(AttentionInput{x}, &recorder).output;
    if (options.backward) {
      const at::Tensor total = loss_of(output, config);
      total.backward();
      loss = total.item<double>();
    }
  }
  trace.steps = recorder.take_steps();
  trace.kept = recorder.take_kept();
  if (options.keep_tensors) {
    for (const auto& [name, parameter] : named_parameters(experiment)) trace.kept.push_back(keep(name, parameter));
  }
  trace.summary = summarize(experiment, trace.steps, options.backward);
  trace.summary.loss = loss;
  trace.token_labels = std::move(experiment.token_labels);
  trace.notes = std::move(experiment.notes);
  return trace;
}

}  // namespace

AttentionTrace trace_attention(const RunConfig& config, const TraceOptions& options) {
  AttentionTrace trace;
  const auto start = std::chrono::steady_clock::now();
  with_torch_guarded(config, [&] { trace = run_traced(config, options); });
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return trace;
}

}  // namespace attn
