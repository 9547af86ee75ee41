#include "checks/reference_run.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "checks/check_context.h"
#include "checks/loop_numbers.h"
#include "core/text.h"

namespace attn {
namespace {

/// `count` of the first `all` numbers at random, in order.
std::vector<std::int64_t> random_places(const CheckContext& context, std::int64_t all, std::int64_t count) {
  const at::Tensor order = context.draw({all}, Draw::kSample).to(at::kCPU, at::kDouble).argsort();
  std::vector<std::int64_t> places;
  for (std::int64_t index = 0; index < count; ++index) places.push_back(order[index].item<std::int64_t>());
  std::sort(places.begin(), places.end());
  return places;
}

std::string some_of(std::int64_t count, std::int64_t all, const std::string& things) {
  return std::to_string(count) + " of " + std::to_string(all) + " " + things;
}

/// How many of 1 ... most (at least 1) cost no more than the budget, where the cost rises with the number.
template <typename Cost>
std::int64_t affordable(std::int64_t most, double budget, const Cost& cost) {
  std::int64_t low = 1, high = most;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (cost(middle) <= budget) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// Forward and backward of a layer that shows no steps.
LayerNumbers unwatched_pass(Subject& subject, const RunConfig& run, const at::Tensor& x, const at::Tensor& d_output) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor leaf = x.detach().clone().requires_grad_(true);
  const at::Tensor output = subject.forward(leaf);
  LayerNumbers numbers;
  numbers.output = output.detach();
  std::vector<std::string> names{"x"};
  std::vector<at::Tensor> targets{leaf};
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
  for (const auto& [name, gradient] : pass.parameter_gradients) numbers.gradients[name] = gradient;
  return numbers;
}

ReferenceLayerInput for_loops(const LayerInput& input, const ReferenceSample& sample) {
  ReferenceLayerInput loops;
  loops.config = input.config;
  loops.B = input.x.size(0);
  loops.T = input.x.size(1);
  loops.x = numbers_of(input.x);
  loops.rows = sample.rows;
  for (const auto& [name, value] : input.parameters) loops.parameters[name] = numbers_of(value);
  return loops;
}

double largest_finite(const at::Tensor& tensor) {
  return at::nan_to_num(tensor.abs(), 0.0, 0.0, 0.0).max().item<double>();
}

/// What the sums behind the plain formula's output hold: their terms may cancel, their roundings do not.
RoundingSize rounding_size(const LayerInput& input, const PlainLayerOutput& output) {
  const std::string name = input.config.qkv == QkvLayout::kFused ? "c_proj" : "o_proj";
  const at::Tensor merged = output.context.transpose(1, 2).flatten(2);  // (B, T, H*d_k)
  at::Tensor sums = at::matmul(merged.abs(), input.parameters.at(name + ".weight").t().abs());
  if (input.config.bias) sums = sums + input.parameters.at(name + ".bias").abs();
  const double scale = 1.0 / std::sqrt(static_cast<double>(input.config.d_k()));
  return {largest_finite(sums), scale * largest_finite(at::matmul(output.q, output.k.transpose(-2, -1)))};
}

}  // namespace

ReferenceSample reference_sample(const CheckContext& context, double budget) {
  const AttentionConfig& config = context.config();
  const std::int64_t B = context.B(), T = context.T();
  ReferenceSample sample;
  sample.x = context.x();
  if (reference_layer_cost(config, B, T, T) <= budget) return sample;

  sample.item = random_places(context, B, 1).front();
  sample.x = context.x().narrow(0, sample.item, 1);
  const std::string of_item = " of item " + std::to_string(sample.item);
  const auto cost_of_rows = [&](std::int64_t rows) { return reference_layer_cost(config, 1, T, rows); };
  if (cost_of_rows(T) <= budget) {
    sample.words = "1 of " + std::to_string(B) + " items, item " + std::to_string(sample.item);
  } else if (cost_of_rows(1) <= budget) {
    sample.rows = random_places(context, T, affordable(T, budget, cost_of_rows));
    sample.words = some_of(static_cast<std::int64_t>(sample.rows.size()), T, "rows") + of_item;
  } else {
    const std::int64_t tokens =
        affordable(T, budget, [&](std::int64_t length) { return reference_layer_cost(config, 1, length, length); });
    const at::Tensor chosen = at::tensor(random_places(context, T, tokens), at::kLong).to(sample.x.device());
    sample.x = sample.x.index_select(1, chosen);
    sample.words = some_of(tokens, T, "tokens") + of_item + " as a shorter input";
  }
  return sample;
}

LayerNumbers run_layer(Subject& subject, const RunConfig& run, const at::Tensor& x, const at::Tensor& d_output) {
  const std::optional<CapturedPass> pass = capture_pass(subject, run, x, d_output);
  if (!pass.has_value()) return unwatched_pass(subject, run, x, d_output);
  return numbers_of_pass(*pass, {x.size(0), subject.config().H, x.size(1), x.size(1)});
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

ReferenceRun::ReferenceRun(CheckContext& context) : context_(&context), subject_(&context.subject()) {
  sample_ = reference_sample(context, context.budget(kReferenceLayerMultiplyAdds));
  take_parameters();
}

ReferenceRun::ReferenceRun(CheckContext& context, std::unique_ptr<Subject> exact, ReferenceRun& own)
    : context_(&context), owned_(std::move(exact)), subject_(owned_.get()), sample_(own.sample_) {
  sample_.x = own.sample_.x.to(at::kDouble);
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
  input_ = {context_->config(), sample_.x, std::move(shown.values)};
  if (!shown.missing.empty()) why_not_ = "the layer shows no " + shown.missing;
}

std::int64_t ReferenceRun::longest_sum() const {
  return std::max({sample_.x.size(1), input_.config.d_model, input_.config.heads_width()});
}

std::int64_t ReferenceRun::longest_gradient_sum() const {
  return std::max(longest_sum(), sample_.x.size(0) * sample_.x.size(1));
}

at::Tensor ReferenceRun::d_output() const {
  const at::Tensor drawn = context_->draw(sample_.x.sizes().vec(), Draw::kGradient).to(sample_.x.options());
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
                                                 : run_layer(*subject_, context_->run(), sample_.x, d_output());
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
  loops_->weights = tensor_of(output.weights, {input.B, input.config.H, R, input.T});
  return *loops_;
}

const LayerNumbers& ReferenceRun::plain() {
  if (plain_.has_value()) return *plain_;
  const at::NoGradGuard no_gradients;
  const PlainLayerOutput output = plain_layer(input_, rules_of(input_.config));
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
  for (const ParameterShape& parameter : reference_parameters(input_.config)) {
    (*loops_gradients_)[parameter.name] = tensor_of(gradients.parameters.at(parameter.name), parameter.shape);
  }
  return *loops_gradients_;
}

const std::map<std::string, at::Tensor>& ReferenceRun::plain_gradients() {
  if (!plain_gradients_.has_value()) {
    plain_gradients_ = plain_layer_backward(input_, rules_of(input_.config), d_output());
  }
  return *plain_gradients_;
}

}  // namespace attn
