#include "trace/trace_attention.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "attention/input_embedding.h"
#include "attention/multi_head_attention.h"
#include "experiment/experiment.h"
#include "experiment/random_input.h"
#include "experiment/torch_guard.h"
#include "trace/attention_maps.h"
#include "trace/forward_calls.h"
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
  if (experiment.tokens.has_value()) return experiment.embed(&recorder);
  return experiment.x.detach().requires_grad_(at::GradMode::is_enabled());
}

/// sum(output * dy) in float64, whatever the layer's dtype: a sum of many float16 numbers would overflow.
at::Tensor loss_of(const at::Tensor& output, const RunConfig& config) {
  const at::Tensor dy = random_normal(output.sizes().vec(), config.seed, RandomStream::kGradient);
  return (output.to(at::kDouble) * dy.to(output.device())).sum();
}

/// Of all calls: a product of (m, k) and (k, n) takes 2 m k n.
///   projection to q           2 * B*T_q * d_model * H*d_k
///   projections to k and v    2 * B*T_k * d_model * H_kv*d_k each, of the keys that are new
///   scores, and context       2 * B*H * T_q*T_k * d_k each
///   output projection         2 * B*T_q * H*d_k * d_model
/// Masked scores are computed too, so they count.
std::int64_t forward_flops(const RunConfig& config, const std::vector<ForwardCall>& calls) {
  const AttentionConfig& layer = config.attention;
  const std::int64_t of_queries = 2 * config.B * config.T * layer.d_model * 2 * layer.heads_width();
  const std::int64_t of_keys = 2 * config.B * key_length(config) * layer.d_model * 2 * layer.H_kv() * layer.d_k();
  std::int64_t attention = 0;
  for (const ForwardCall& call : calls) {
    attention += 2 * (2 * config.B * layer.H * call.queries * call.keys * layer.d_k());
  }
  return of_queries + of_keys + attention;
}

/// A causal mask alone is a view of the buffer. Whatever else hides keys makes a mask of its own.
std::int64_t built_mask_bytes(const RunConfig& config, const std::vector<ForwardCall>& calls) {
  const AttentionConfig& layer = config.attention;
  if (!layer.window && !layer.mask && !config.padding) return 0;
  std::int64_t largest = 0;
  for (const ForwardCall& call : calls) largest = std::max(largest, call.queries * call.keys);
  return (config.padding ? config.B : 1) * largest;
}

TraceSummary summarize(const Experiment& experiment, const AttentionTrace& trace, bool backward) {
  const RunConfig& config = experiment.config;
  TraceSummary summary;
  for (const auto& [name, parameter] : named_parameters(experiment)) summary.parameters += parameter.numel();
  summary.forward_flops = forward_flops(config, trace.calls);
  // Each product's backward pass is two products of its size: one for the gradient of either factor.
  if (backward) summary.backward_flops = 2 * summary.forward_flops;
  for (const TraceStep& step : trace.steps) {
    const std::optional<Step> found = find_step(step.name);
    if (!found.has_value() || !is_attention_map(*found)) continue;  // a parameter's gradient, or another shape
    summary.attention_bytes = std::max(summary.attention_bytes, step.bytes);
    ++summary.attention_tensors;
  }
  for (const at::Tensor& buffer : experiment.layer->buffers()) {
    summary.mask_bytes += buffer.numel() * static_cast<std::int64_t>(buffer.element_size());
  }
  summary.built_mask_bytes = built_mask_bytes(config, trace.calls);
  return summary;
}

AttentionTrace run_traced(const RunConfig& config, const TraceOptions& options) {
  Experiment experiment = make_experiment(config);
  experiment.layer->train(config.mode == Mode::kTrain);
  TraceRecorder recorder(letters_of(config), options.max_values, options.keep_tensors);

  AttentionTrace trace;
  trace.config = config;
  trace.torch_version = torch_version();
  trace.threads = at::get_num_threads();
  const bool backward = options.backward && !config.cache.has_value();
  double loss = 0.0;
  at::Tensor x;
  {
    const at::AutoGradMode grad_mode(backward);
    if (backward) {
      for (const auto& [name, parameter] : named_parameters(experiment)) recorder.watch_parameter(name, parameter);
    }
    x = make_x(experiment, recorder);
    const ForwardResult forward =
        run_forward_calls(experiment, x, recorder, [&](const ForwardCall& call) { recorder.begin_call(call.call); });
    trace.calls = forward.calls;
    if (backward) {
      const at::Tensor total = loss_of(forward.output, config);
      total.backward();
      loss = total.item<double>();
    }
  }
  trace.steps = recorder.take_steps();
  trace.kept = recorder.take_kept();
  if (options.keep_tensors) {
    for (const auto& [name, parameter] : named_parameters(experiment)) trace.kept.push_back(keep(name, parameter));
    // No call has had all of it, and another run can read it from the file.
    if (config.cache.has_value()) trace.kept.push_back(keep("x", x));
  }
  trace.summary = summarize(experiment, trace, backward);
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
