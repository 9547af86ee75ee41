// The loops over the whole grid of configs: their gradients are the slopes of their output, rows stand for themselves,
// and the plain LibTorch layer gives the same in float64.
#include <ATen/ATen.h>

#include <cmath>
#include <functional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "checks/reference/loop_numbers.h"
#include "checks/reference/plain_layer.h"
#include "checks/reference/reference_layer.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

ReferenceLayerGradients backward(const ReferenceLayerInput& input, const std::vector<double>& d_output) {
  return reference_layer_backward(input, reference_layer(input), d_output);
}

std::size_t as_size(std::int64_t number) { return static_cast<std::size_t>(number); }

std::vector<double> random_numbers(std::int64_t count) {
  std::vector<double> numbers(as_size(count));
  for (double& number : numbers) number = *rc::gen::inRange(-2000, 2001) / 1000.0;
  return numbers;
}

bool now_and_then() { return *rc::gen::inRange(0, 3) == 0; }

std::int64_t size_below(int limit) { return static_cast<std::int64_t>(*rc::gen::inRange(1, limit)); }

RopeConfig random_rope() {
  RopeConfig rope;
  rope.theta = *rc::gen::element(2.0, 100.0, 10000.0);
  rope.style = *rc::gen::element(RopeStyle::kHalf, RopeStyle::kAdjacent);
  rope.scaling.kind = *rc::gen::element(RopeScalingKind::kNone, RopeScalingKind::kLinear, RopeScalingKind::kLlama3,
                                        RopeScalingKind::kYarn);
  rope.scaling.factor = 0.5 * static_cast<double>(size_below(8));
  rope.scaling.original_max_seq_len = *rc::gen::element<std::int64_t>(8, 64, 8192);
  return rope;
}

MaskConfig random_mask(bool causal, std::int64_t T_q, std::int64_t T_k) {
  switch (*rc::gen::inRange(0, causal ? 3 : 5)) {
    case 0: {
      RowsMask rows{T_q, T_k, {}, std::nullopt, ""};
      for (std::int64_t cell = 0; cell < T_q * T_k; ++cell) rows.visible.push_back(!now_and_then());
      return rows;
    }
    case 1:
      return DocumentMask{{size_below(4), size_below(4)}};
    case 2:
      return DilatedMask{size_below(4)};
    case 3:
      return PrefixMask{size_below(4)};
    default:
      return BidirectionalMask{};
  }
}

/// Every capability now and then, in every combination that makes sense.
ReferenceLayerInput random_layer() {
  ReferenceLayerInput input;
  AttentionConfig& config = input.config;
  const std::int64_t H_kv = size_below(3);
  config.d_model = size_below(5);
  config.H = H_kv * size_below(3);
  config.given_H_kv = H_kv;
  const bool has_memory = now_and_then();
  const bool turns = !has_memory && now_and_then();
  config.given_d_k = turns ? 2 * size_below(4) : size_below(4);
  config.qkv = has_memory ? QkvLayout::kSeparate
                          : *rc::gen::element(QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate);
  config.bias = *rc::gen::arbitrary<bool>();
  if (now_and_then()) config.given_output_bias = !config.bias;
  config.causal = !has_memory && *rc::gen::arbitrary<bool>();
  input.B = size_below(3);
  input.T = size_below(6);
  if (has_memory) input.T_k = size_below(6);
  if (turns) config.rope = random_rope();
  if (!has_memory && now_and_then()) config.window = size_below(4);
  if (now_and_then()) config.mask = random_mask(config.causal, input.T, input.keys());
  config.qk_norm = now_and_then();
  config.qk_norm_eps = 0.01;
  if (now_and_then()) config.given_scale = 0.1 * static_cast<double>(size_below(10));
  if (now_and_then()) config.softcap = 0.5 * static_cast<double>(size_below(5));
  config.alibi = !has_memory && now_and_then();
  config.sink = now_and_then();
  input.x = random_numbers(input.B * input.T * config.d_model);
  if (has_memory) input.memory = random_numbers(input.B * input.T_k * config.d_model);
  if (now_and_then()) {
    for (std::int64_t key = 0; key < input.B * input.keys(); ++key) input.real_keys.push_back(!now_and_then());
  }
  for (const ParameterShape& parameter : reference_parameters(config)) {
    std::int64_t count = 1;
    for (const std::int64_t entries : parameter.shape) count *= entries;
    input.parameters[parameter.name] = random_numbers(count);
  }
  return input;
}

double loss(const ReferenceLayerInput& input, const std::vector<double>& d_output) {
  const std::vector<double> output = reference_layer(input).output;
  double sum = 0.0;
  for (std::size_t index = 0; index < output.size(); ++index) sum += output[index] * d_output[index];
  return sum;
}

/// The slope of the loss along one number of the input, by central differences.
double slope(ReferenceLayerInput input, const std::vector<double>& d_output,
             const std::function<double&(ReferenceLayerInput&)>& number) {
  constexpr double kStep = 1e-5;
  const double middle = number(input);
  number(input) = middle + kStep;
  const double above = loss(input, d_output);
  number(input) = middle - kStep;
  return (above - loss(input, d_output)) / (2 * kStep);
}

RC_GTEST_PROP(ReferenceLayer, ItsGradientsAreTheSlopesOfItsOutput, ()) {
  const ReferenceLayerInput input = random_layer();
  const std::vector<double> d_output = random_numbers(input.B * input.T * input.config.d_model);
  const ReferenceLayerGradients gradients = backward(input, d_output);
  const auto require_slope = [&](double gradient, const std::function<double&(ReferenceLayerInput&)>& number) {
    const double expected = slope(input, d_output, number);
    RC_ASSERT(std::abs(gradient - expected) <= 1e-5 * std::max(1.0, std::abs(expected)));
  };
  const std::size_t of_x = *rc::gen::inRange<std::size_t>(0, input.x.size());
  require_slope(gradients.x[of_x], [&](ReferenceLayerInput& changed) -> double& { return changed.x[of_x]; });
  if (!input.memory.empty()) {
    const std::size_t of_memory = *rc::gen::inRange<std::size_t>(0, input.memory.size());
    require_slope(gradients.memory[of_memory],
                  [&](ReferenceLayerInput& changed) -> double& { return changed.memory[of_memory]; });
  }
  for (const auto& [name, values] : input.parameters) {
    const std::size_t index = *rc::gen::inRange<std::size_t>(0, values.size());
    const std::string which = name;
    require_slope(gradients.parameters.at(name)[index],
                  [&](ReferenceLayerInput& changed) -> double& { return changed.parameters.at(which)[index]; });
  }
}

RC_GTEST_PROP(ReferenceLayer, SomeRowsAreWhatTheyAreAmongAll, ()) {
  ReferenceLayerInput input = random_layer();
  const ReferenceLayerOutput whole = reference_layer(input);
  std::vector<double> d_rows;
  std::vector<double> d_whole(whole.output.size(), 0.0), expected;
  for (std::int64_t t = 0; t < input.T; ++t) {
    if (t == input.T - 1 || *rc::gen::arbitrary<bool>()) input.rows.push_back(t);
  }
  for (std::int64_t b = 0; b < input.B; ++b) {
    for (const std::int64_t t : input.rows) {
      for (std::int64_t m = 0; m < input.config.d_model; ++m) {
        const std::size_t index = as_size((b * input.T + t) * input.config.d_model + m);
        d_rows.push_back(*rc::gen::inRange(-2000, 2001) / 1000.0);
        d_whole[index] = d_rows.back();
        expected.push_back(whole.output[index]);
      }
    }
  }
  RC_ASSERT(reference_layer(input).output == expected);
  const ReferenceLayerGradients some = backward(input, d_rows);
  input.rows.clear();
  const ReferenceLayerGradients all = backward(input, d_whole);
  const auto require_near = [](const std::vector<double>& actual, const std::vector<double>& wanted) {
    for (std::size_t index = 0; index < wanted.size(); ++index) {
      RC_ASSERT(std::abs(actual[index] - wanted[index]) <= 1e-10 * std::max(1.0, std::abs(wanted[index])));
    }
  };
  require_near(some.x, all.x);
  require_near(some.memory, all.memory);
  for (const auto& [name, gradient] : all.parameters) require_near(some.parameters.at(name), gradient);
}

/// The same input as tensors in float64.
LayerInput as_tensors(const ReferenceLayerInput& loops) {
  const AttentionConfig& config = loops.config;
  LayerInput input;
  input.config = config;
  input.x = tensor_of(loops.x, {loops.B, loops.T, config.d_model});
  if (!loops.memory.empty()) input.memory = tensor_of(loops.memory, {loops.B, loops.T_k, config.d_model});
  if (!loops.real_keys.empty()) {
    const std::vector<std::int64_t> flags(loops.real_keys.begin(), loops.real_keys.end());
    input.real_keys = at::tensor(flags, at::kLong).view({loops.B, loops.keys()}).to(at::kBool);
  }
  for (const ParameterShape& parameter : reference_parameters(config)) {
    input.parameters[parameter.name] = tensor_of(loops.parameters.at(parameter.name), parameter.shape);
  }
  return input;
}

RC_GTEST_PROP(ReferenceLayer, ThePlainLayerGivesTheSameInFloat64, ()) {
  const ReferenceLayerInput loops = random_layer();
  const LayerInput input = as_tensors(loops);
  const auto require_near = [](const at::Tensor& actual, const std::vector<double>& expected) {
    const at::Tensor wanted = tensor_of(expected, actual.sizes());
    RC_ASSERT(test::max_difference(actual, wanted) <= test::limit_for(wanted, 1e-12));
  };
  const ReferenceLayerOutput output = reference_layer(loops);
  const PlainLayerOutput plain = plain_layer(input, rules_of(input.config));
  require_near(plain.q, output.q);
  require_near(plain.k, output.k);
  require_near(plain.v, output.v);
  require_near(plain.weights, output.weights);
  require_near(plain.context, output.context);
  require_near(plain.output, output.output);
  const std::vector<double> d_output = random_numbers(loops.B * loops.T * loops.config.d_model);
  const ReferenceLayerGradients gradients = reference_layer_backward(loops, output, d_output);
  const auto found = plain_layer_backward(input, rules_of(input.config), tensor_of(d_output, input.x.sizes()));
  require_near(found.at("x"), gradients.x);
  if (input.memory.defined()) require_near(found.at("memory"), gradients.memory);
  for (const auto& [name, gradient] : gradients.parameters) require_near(found.at(name), gradient);
}

}  // namespace
}  // namespace attn
