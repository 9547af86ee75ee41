#include "checks/reference_layer.h"

#include <ATen/ATen.h>

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "attention/layer_fixture.h"
#include "checks/plain_layer.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

ReferenceLayerGradients backward(const ReferenceLayerInput& input, const std::vector<double>& d_output) {
  return reference_layer_backward(input, reference_layer(input), d_output);
}

std::size_t as_size(std::int64_t number) { return static_cast<std::size_t>(number); }

/// Two heads of width 1, three tokens.
ReferenceLayerInput two_heads(QkvLayout layout, const std::map<std::string, std::vector<double>>& parameters) {
  ReferenceLayerInput input;
  input.config.d_model = 2;
  input.config.H = 2;
  input.config.qkv = layout;
  input.B = 1;
  input.T = 3;
  input.x = {1, 2, 3, 4, 5, 9};
  input.parameters = parameters;
  return input;
}

/// Queries are 0, so that each query takes the mean of what it may see; keys and values are x itself.
const std::map<std::string, std::vector<double>> kSeparateMeans{
    {"q_proj.weight", {0, 0, 0, 0}},
    {"k_proj.weight", {1, 0, 0, 1}},
    {"v_proj.weight", {1, 0, 0, 1}},
    {"o_proj.weight", {1, 10, 100, 1000}},
};

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double limit = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t index = 0; index < actual.size(); ++index) {
    EXPECT_TRUE(std::abs(actual[index] - expected[index]) <= limit * std::max(1.0, std::abs(expected[index])))
        << index << ": " << actual[index] << ", expected " << expected[index];
  }
}

TEST(ReferenceLayer, GivesTheMeansOfTwoHeadsForEqualScores) {
  const ReferenceLayerOutput output = reference_layer(two_heads(QkvLayout::kSeparate, kSeparateMeans));
  const double third = 1.0 / 3.0;
  expect_near(output.weights, {1, 0, 0, 0.5, 0.5, 0, third, third, third, 1, 0, 0, 0.5, 0.5, 0, third, third, third});
  expect_near(output.context, {1, 2, 3, 2, 3, 5});             // head 0, then head 1
  expect_near(output.output, {21, 2100, 32, 3200, 53, 5300});  // 1*c0 + 10*c1, 100*c0 + 1000*c1
}

TEST(ReferenceLayer, ReadsFusedThirdsAsAllQueriesThenAllKeysThenAllValues) {
  const auto input = two_heads(QkvLayout::kFused, {{"c_attn.weight", {0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1}},
                                                   {"c_proj.weight", {1, 10, 100, 1000}}});
  expect_near(reference_layer(input).output, {21, 2100, 32, 3200, 53, 5300});
}

TEST(ReferenceLayer, ReadsFusedPerHeadAsQueryKeyAndValueOfEachHead) {
  const auto input = two_heads(QkvLayout::kFusedPerHead, {{"qkv_proj.weight", {0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1}},
                                                          {"o_proj.weight", {1, 10, 100, 1000}}});
  expect_near(reference_layer(input).output, {21, 2100, 32, 3200, 53, 5300});
}

TEST(ReferenceLayer, SeesTheFutureWhenNotCausal) {
  ReferenceLayerInput input = two_heads(QkvLayout::kSeparate, kSeparateMeans);
  input.config.causal = false;
  expect_near(reference_layer(input).output, {53, 5300, 53, 5300, 53, 5300});
}

TEST(ReferenceLayer, AddsEachBias) {
  // Scores of head 0 are its bias 1 times x0 = 0, ln 3, ln 2; head 1 has query 0. Values are 10 + x1.
  ReferenceLayerInput input = two_heads(QkvLayout::kSeparate, {{"q_proj.weight", {0, 0, 0, 0}},
                                                               {"q_proj.bias", {1, 0}},
                                                               {"k_proj.weight", {1, 0, 1, 0}},
                                                               {"k_proj.bias", {7, 0}},
                                                               {"v_proj.weight", {0, 1, 0, 1}},
                                                               {"v_proj.bias", {10, 0}},
                                                               {"o_proj.weight", {1, 0, 0, 1}},
                                                               {"o_proj.bias", {0, 100}}});
  input.config.bias = true;
  input.x = {0, 6, std::log(3.0), 2, std::log(2.0), 4};
  const ReferenceLayerOutput output = reference_layer(input);
  expect_near(output.weights, {1, 0, 0, 0.25, 0.75, 0, 1. / 6, 1. / 2, 1. / 3,  //
                               1, 0, 0, 0.5, 0.5, 0, 1. / 3, 1. / 3, 1. / 3});
  expect_near(output.output, {16, 106, 13, 104, 10 + 10. / 3, 104});
}

TEST(ReferenceLayer, ScalesByTheWidthOfOneHead) {
  ReferenceLayerInput input;
  input.config.d_model = 1;
  input.config.H = 1;
  input.config.given_d_k = 4;
  input.config.module = ModuleKind::kSingleHead;
  input.config.qkv = QkvLayout::kSeparate;
  input.config.causal = false;
  input.B = 1;
  input.T = 2;
  input.x = {1, 0};
  const double root = std::sqrt(std::log(3.0) / 2.0);  // four products of q.k sum to 2 ln 3, half of it is the score
  input.parameters = {{"q_proj.weight", {root, root, root, root}},
                      {"k_proj.weight", {root, root, root, root}},
                      {"v_proj.weight", {1, 2, 3, 4}},
                      {"o_proj.weight", {1, 1, 1, 1}}};
  const ReferenceLayerOutput output = reference_layer(input);
  expect_near(output.weights, {0.75, 0.25, 0.5, 0.5});
  expect_near(output.output, {7.5, 5});
}

TEST(ReferenceLayer, GivesTheGradientsWorkedOutByHand) {
  // Only output channel 0 of the last token counts: mean of x0 plus 10 times the mean of x1.
  const ReferenceLayerInput input = two_heads(QkvLayout::kSeparate, kSeparateMeans);
  const ReferenceLayerGradients gradients = backward(input, {0, 0, 0, 0, 1, 0});
  const double third = 1.0 / 3.0;
  expect_near(gradients.x, {third, 10 * third, third, 10 * third, third, 10 * third});
  expect_near(gradients.parameters.at("o_proj.weight"), {3, 5, 0, 0});
  expect_near(gradients.parameters.at("v_proj.weight"), {3, 5, 30, 50});
  // dP is 1, 3, 5 and 20, 40, 90; minus its mean, over 3, times k (1, 3, 5 and 2, 4, 9): 8/3 and 260/3, times x[2].
  expect_near(gradients.parameters.at("q_proj.weight"), {40 * third, 24, 1300 * third, 780});
  expect_near(gradients.parameters.at("k_proj.weight"), {0, 0, 0, 0});
  EXPECT_EQ(gradients.parameters.size(), 4u);
}

TEST(ReferenceLayer, ListsTheParametersOfEachLayout) {
  AttentionConfig config;
  config.d_model = 6;
  config.H = 2;
  config.given_d_k = 4;
  config.bias = true;
  const auto text = [&](QkvLayout layout) {
    config.qkv = layout;
    std::string words;
    for (const ParameterShape& parameter : reference_parameters(config)) {
      words += parameter.name;
      for (const std::int64_t size : parameter.shape) words += " " + std::to_string(size);
      words += "; ";
    }
    return words;
  };
  EXPECT_EQ(text(QkvLayout::kFused), "c_attn.weight 24 6; c_attn.bias 24; c_proj.weight 6 8; c_proj.bias 6; ");
  EXPECT_EQ(text(QkvLayout::kFusedPerHead),
            "qkv_proj.weight 24 6; qkv_proj.bias 24; o_proj.weight 6 8; o_proj.bias 6; ");
  EXPECT_EQ(text(QkvLayout::kSeparate),
            "q_proj.weight 8 6; q_proj.bias 8; k_proj.weight 8 6; k_proj.bias 8; v_proj.weight 8 6; v_proj.bias 8; "
            "o_proj.weight 6 8; o_proj.bias 6; ");
}

std::vector<double> random_numbers(std::int64_t count) {
  std::vector<double> numbers(as_size(count));
  for (double& number : numbers) number = *rc::gen::inRange(-2000, 2001) / 1000.0;
  return numbers;
}

ReferenceLayerInput random_layer() {
  const auto size = [](int limit) { return static_cast<std::int64_t>(*rc::gen::inRange(1, limit)); };
  ReferenceLayerInput input;
  input.config.d_model = size(5);
  input.config.H = size(4);
  input.config.given_d_k = size(4);
  input.config.qkv = *rc::gen::element(QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate);
  input.config.bias = *rc::gen::arbitrary<bool>();
  input.config.causal = *rc::gen::arbitrary<bool>();
  input.B = size(3);
  input.T = size(6);
  input.x = random_numbers(input.B * input.T * input.config.d_model);
  for (const ParameterShape& parameter : reference_parameters(input.config)) {
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
  for (const auto& [name, gradient] : all.parameters) require_near(some.parameters.at(name), gradient);
}

TEST(ReferenceLayer, CostsMoreForMoreRowsTokensAndItems) {
  AttentionConfig config;
  EXPECT_LT(reference_layer_cost(config, 1, 100, 1), reference_layer_cost(config, 1, 100, 2));
  EXPECT_LT(reference_layer_cost(config, 1, 100, 100), reference_layer_cost(config, 1, 101, 100));
  EXPECT_EQ(2 * reference_layer_cost(config, 1, 100, 100), reference_layer_cost(config, 2, 100, 100));
}

// ---- against modules written in PyTorch's Python ----

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kDouble).contiguous();
  return {dense.const_data_ptr<double>(), dense.const_data_ptr<double>() + dense.numel()};
}

class ReferenceFixture : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fixture = test::load_fixture(GetParam());
    limit = fixture.at("x").scalar_type() == at::kFloat ? 1e-6 : 1e-12;
  }

  void expect_close(const std::vector<double>& actual, const std::string& name) const {
    const at::Tensor expected = fixture.at(name);
    const at::Tensor found = at::tensor(actual, at::kDouble).view(expected.sizes());
    EXPECT_LE(test::max_difference(found, expected), test::limit_for(expected, limit)) << name;
  }

  test::LayerFixture fixture;
  double limit = 0.0;
};

TEST_P(ReferenceFixture, LoopsGiveOutputWeightsAndEveryGradient) {
  ReferenceLayerInput input;
  input.config = fixture.config.attention;
  input.B = fixture.at("x").size(0);
  input.T = fixture.at("x").size(1);
  input.x = numbers_of(fixture.at("x"));
  for (const ParameterShape& parameter : reference_parameters(input.config)) {
    ASSERT_EQ(fixture.at(parameter.name).sizes(), at::IntArrayRef(parameter.shape)) << parameter.name;
    input.parameters[parameter.name] = numbers_of(fixture.at(parameter.name));
  }
  const ReferenceLayerOutput output = reference_layer(input);
  expect_close(output.output, "expected.output");
  expect_close(output.weights, "expected.weights");
  const ReferenceLayerGradients gradients = backward(input, numbers_of(fixture.at("gradient.output")));
  expect_close(gradients.x, "gradient.x");
  for (const auto& [name, gradient] : gradients.parameters) expect_close(gradient, "gradient." + name);
  // x, expected.output, expected.weights, gradient.output, gradient.x, and each parameter with its gradient
  EXPECT_EQ(fixture.tensors.size(), 5 + 2 * gradients.parameters.size());
}

TEST_P(ReferenceFixture, ThePlainLayerGivesTheSame) {
  LayerInput input{fixture.config.attention, fixture.at("x"), {}};
  for (const ParameterShape& parameter : reference_parameters(input.config)) {
    input.parameters[parameter.name] = fixture.at(parameter.name);
  }
  const PlainLayerOutput output = plain_layer(input, rules_of(input.config));
  expect_close(numbers_of(output.output), "expected.output");
  expect_close(numbers_of(output.weights), "expected.weights");
  for (const auto& [name, gradient] :
       plain_layer_backward(input, rules_of(input.config), fixture.at("gradient.output"))) {
    expect_close(numbers_of(gradient), "gradient." + name);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ReferenceFixture, ::testing::ValuesIn(test::attention_fixtures()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace attn
