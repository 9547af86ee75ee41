#include "checks/reference_run.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "checks/check_context.h"
#include "checks/input_parts.h"
#include "checks/reference/loop_numbers.h"
#include "checks/reference/plain_rounding.h"
#include "core/text.h"

namespace attn {
namespace {

/// Forward and backward of a layer that shows no steps.
LayerNumbers unwatched_pass(Subject& subject, const RunConfig& run, const AttentionInput& input,
                            const at::Tensor& d_output) {
  const at::AutoGradMode with_gradients(true);
  LayerNumbers numbers;
  std::vector<std::string> names;
  std::vector<at::Tensor> targets;
  const auto add_leaf = [&](const std::string& name, at::Tensor& tensor) {
    tensor = tensor.detach().clone().requires_grad_(true);
    names.push_back(name);
    targets.push_back(tensor);
  };
  AttentionInput leaves = input;
  add_leaf("x", leaves.x);
  if (leaves.memory.defined()) add_leaf("memory", leaves.memory);
  const at::Tensor output = subject.forward(leaves);
  numbers.output = output.detach();
  for (const auto& [name, value] : subject.named_parameters()) {
    if (!value.requires_grad()) continue;
    names.push_back(name);
    targets.push_back(value);
  }
  if (!output.requires_grad()) return numbers;
  std::vector<at::Tensor> found;
  run_subject_code(run, [&] {
    found = torch::autograd::grad({output}, targets, {d_output}, /*retain_graph=*/false, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  });
  for (std::size_t index = 0; index < names.size(); ++index) numbers.gradients[names[index]] = found[index];
  return numbers;
}

LayerNumbers numbers_of_pass(const CapturedPass& pass, const std::vector<std::int64_t>& pairs_shape) {
  LayerNumbers numbers;
  numbers.output = pass.steps.output;
  if (const at::Tensor* weights = captured_step(pass.steps, Step::kWeights, pairs_shape)) numbers.weights = *weights;
  numbers.gradients["x"] = pass.x_gradient;
  if (pass.memory_gradient.defined()) numbers.gradients["memory"] = pass.memory_gradient;
  for (const auto& [name, gradient] : pass.parameter_gradients) numbers.gradients[name] = gradient;
  return numbers;
}

/// As an ordinary layer of this config is computed.
LayerRules ordinary_rules(const AttentionConfig& config) {
  LayerRules rules = rules_of(config);
  rules.by_library = config.engine == Engine::kSdpa;
  return rules;
}

ReferenceLayerInput for_loops(const LayerInput& input, const ReferenceSample& sample) {
  ReferenceLayerInput loops;
  loops.config = input.config;
  loops.B = input.x.size(0);
  loops.T = input.x.size(1);
  loops.x = numbers_of(input.x);
  if (input.memory.defined()) {
    loops.T_k = input.memory.size(1);
    loops.memory = numbers_of(input.memory);
  }
  if (input.real_keys.defined()) loops.real_keys = flags_of(input.real_keys);
  loops.rows = sample.rows;
  for (const auto& [name, value] : input.parameters) loops.parameters[name] = numbers_of(value);
  return loops;
}

}  // namespace

LayerNumbers run_layer(Subject& subject, const RunConfig& run, const AttentionInput& input,
                       const at::Tensor& d_output) {
  const std::optional<CapturedPass> pass = capture_pass(subject, run, input, d_output);
  if (!pass.has_value()) return unwatched_pass(subject, run, input, d_output);
  const std::int64_t T = input.x.size(1), T_k = input.memory.defined() ? input.memory.size(1) : T;
  return numbers_of_pass(*pass, {input.x.size(0), subject.config().H, T, T_k});
}

ShownParameters shown_parameters(Subject& subject) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, value] : subject.named_parameters()) all[name] = value.detach();
  ShownParameters shown;
  std::vector<std::string> missing;
  for (const ParameterShape& parameter : reference_parameters(subject.config())) {
    const auto found = all.find(parameter.name);
    if (found == all.end()) {
      missing.push_back(parameter.name);
    } else if (found->second.sizes() != at::IntArrayRef(parameter.shape)) {
      missing.push_back(parameter.name + " of shape " + format_shape(parameter.shape));
    } else {
      shown.values[parameter.name] = found->second;
    }
  }
  shown.missing = join(missing);
  return shown;
}

std::string what_is_not_finite(CheckContext& context) {
  const auto is_finite = [](const at::Tensor& tensor) {
    return !tensor.defined() || at::isfinite(tensor).all().item<bool>();
  };
  if (!is_finite(context.x())) return "x";
  if (!is_finite(context.input().memory)) return "memory";
  for (const auto& [name, value] : context.subject().named_parameters()) {
    if (!is_finite(value.detach())) return name;
  }
  return "";
}

ReferenceRun::ReferenceRun(CheckContext& context) : context_(&context), subject_(&context.subject()) {
  sample_ = reference_sample(context, context.budget(kReferenceLayerMultiplyAdds));
  take_parameters();
}

ReferenceRun::ReferenceRun(CheckContext& context, std::unique_ptr<Subject> exact, ReferenceRun& own)
    : context_(&context), owned_(std::move(exact)), subject_(owned_.get()), sample_(own.sample_) {
  sample_.input = in_type(own.sample_.input, at::kDouble);
  take_parameters();
  const auto same_parameters = [&] {
    for (const auto& [name, value] : input_.parameters) {
      const auto found = own.input_.parameters.find(name);
      if (found == own.input_.parameters.end() || !at::equal(found->second.to(at::kDouble), value)) return false;
    }
    return true;
  };
  if (why_not_.empty() && same_parameters()) same_ = &own;
}

void ReferenceRun::take_parameters() {
  ShownParameters shown = shown_parameters(*subject_);
  const AttentionInput& input = sample_.input;
  input_ = {context_->config(), input.x, std::move(shown.values), input.memory, input.real_keys};
  if (!shown.missing.empty()) why_not_ = "the layer shows no " + shown.missing;
}

std::int64_t ReferenceRun::longest_sum() const {
  return std::max({sample_.key_len(), input_.config.d_model, input_.config.heads_width()});
}

std::int64_t ReferenceRun::longest_gradient_sum() const {
  const at::Tensor& x = sample_.input.x;
  return std::max(longest_sum(), x.size(0) * std::max(x.size(1), sample_.key_len()));
}

at::Tensor ReferenceRun::d_output() const {
  const at::Tensor drawn = context_->draw(sample_.input.x.sizes().vec(), Draw::kGradient).to(sample_.input.x.options());
  if (sample_.rows.empty()) return drawn;
  const at::Tensor rows = at::tensor(sample_.rows, at::kLong).to(drawn.device());
  return at::zeros_like(drawn).index_copy(1, rows, drawn.index_select(1, rows));
}

at::Tensor ReferenceRun::judged_rows(const at::Tensor& whole, std::int64_t axis) const {
  if (!whole.defined() || sample_.rows.empty()) return whole;
  return whole.index_select(axis, at::tensor(sample_.rows, at::kLong).to(whole.device()));
}

const LayerNumbers& ReferenceRun::layer() {
  if (layer_.has_value()) return *layer_;
  const bool shared = owned_ == nullptr && sample_.words.empty();
  layer_ = shared && context_->pass() != nullptr ? numbers_of_pass(*context_->pass(), context_->pairs_shape())
                                                 : run_layer(*subject_, context_->run(), sample_.input, d_output());
  layer_->output = judged_rows(layer_->output, 1);
  layer_->weights = judged_rows(layer_->weights, 2);
  return *layer_;
}

const LayerNumbers& ReferenceRun::loops() {
  if (same_ != nullptr) return same_->loops();
  if (loops_.has_value()) return *loops_;
  loops_forward_.emplace(for_loops(input_, sample_), ReferenceLayerOutput{});
  const ReferenceLayerInput& input = loops_forward_->first;
  ReferenceLayerOutput& output = loops_forward_->second;
  output = reference_layer(input);
  const std::int64_t R = sample_.rows.empty() ? input.T : static_cast<std::int64_t>(sample_.rows.size());
  loops_.emplace();
  loops_->output = tensor_of(output.output, {input.B, R, input.config.d_model});
  loops_->weights = tensor_of(output.weights, {input.B, input.config.H, R, input.keys()});
  return *loops_;
}

const LayerNumbers& ReferenceRun::plain() {
  if (plain_.has_value()) return *plain_;
  const at::NoGradGuard no_gradients;
  const PlainLayerOutput output = plain_layer(input_, ordinary_rules(input_.config));
  plain_.emplace();
  plain_->output = judged_rows(output.output, 1);
  plain_->weights = judged_rows(output.weights, 2);
  plain_->size = rounding_size(input_, output);
  return *plain_;
}

const std::map<std::string, at::Tensor>& ReferenceRun::loops_gradients() {
  if (same_ != nullptr) return same_->loops_gradients();
  if (loops_gradients_.has_value()) return *loops_gradients_;
  loops();
  ReferenceLayerGradients gradients =
      reference_layer_backward(loops_forward_->first, loops_forward_->second, numbers_of(judged_rows(d_output(), 1)));
  loops_forward_.reset();
  loops_gradients_.emplace();
  (*loops_gradients_)["x"] = tensor_of(gradients.x, input_.x.sizes());
  if (input_.memory.defined()) (*loops_gradients_)["memory"] = tensor_of(gradients.memory, input_.memory.sizes());
  for (const ParameterShape& parameter : reference_parameters(input_.config)) {
    (*loops_gradients_)[parameter.name] = tensor_of(gradients.parameters.at(parameter.name), parameter.shape);
  }
  return *loops_gradients_;
}

const std::map<std::string, at::Tensor>& ReferenceRun::plain_gradients() {
  if (!plain_gradients_.has_value()) {
    plain_gradients_ = plain_layer_backward(input_, ordinary_rules(input_.config), d_output());
  }
  return *plain_gradients_;
}

double ReferenceRun::gradient_rounding() {
  if (!gradient_rounding_.has_value()) {
    const at::Tensor& x = sample_.input.x;
    gradient_rounding_ = gradient_change_by_rounding(input_, d_output(), x.scalar_type(), context_->run().seed);
  }
  return *gradient_rounding_;
}

}  // namespace attn
