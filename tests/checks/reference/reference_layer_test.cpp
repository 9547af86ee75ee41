#include "checks/reference/reference_layer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "attention/layer_fixture.h"
#include "checks/reference/loop_numbers.h"
#include "checks/reference/plain_attention.h"
#include "checks/reference/plain_layer.h"
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

TEST(ReferenceLayer, CostsMoreForMoreRowsTokensAndItems) {
  AttentionConfig config;
  EXPECT_LT(reference_layer_cost(config, 1, 100, 1), reference_layer_cost(config, 1, 100, 2));
  EXPECT_LT(reference_layer_cost(config, 1, 100, 100), reference_layer_cost(config, 1, 101, 100));
  EXPECT_EQ(2 * reference_layer_cost(config, 1, 100, 100), reference_layer_cost(config, 2, 100, 100));
}

// ---- in one line each, what is new beside the plain layer ----

TEST(ReferenceLayer, ListsTheParametersOfGroupedHeadsNormAndSinks) {
  AttentionConfig config;
  config.d_model = 6;
  config.H = 4;
  config.given_H_kv = 2;
  config.given_d_k = 3;
  config.bias = true;
  config.given_output_bias = false;
  config.qk_norm = true;
  config.sink = true;
  std::string words;
  for (const ParameterShape& parameter : reference_parameters(config)) {
    words += parameter.name;
    for (const std::int64_t size : parameter.shape) words += " " + std::to_string(size);
    words += "; ";
  }
  EXPECT_EQ(words,
            "c_attn.weight 24 6; c_attn.bias 24; c_proj.weight 6 12; q_norm.weight 3; k_norm.weight 3; sinks 4; ");
}

/// Four query heads of width 1 over two key heads, one token: each head's context is its value.
ReferenceLayerInput four_heads_over_two(QkvLayout layout,
                                        const std::map<std::string, std::vector<double>>& parameters) {
  ReferenceLayerInput input;
  input.config.d_model = 4;
  input.config.H = 4;
  input.config.given_H_kv = 2;
  input.config.qkv = layout;
  input.B = 1;
  input.T = 1;
  input.x = {1, 0, 0, 0};
  input.parameters = parameters;
  return input;
}

/// (rows, 4) whose first column counts from 1: row r makes r + 1 of x.
std::vector<double> counting_rows(std::int64_t rows) {
  std::vector<double> weight(as_size(4 * rows), 0.0);
  for (std::int64_t row = 0; row < rows; ++row) weight[as_size(4 * row)] = static_cast<double>(row + 1);
  return weight;
}

const std::vector<double> kUnit{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

TEST(ReferenceLayer, FusedThirdsOfGroupedHeadsAreAllQueriesThenAllKeysThenAllValues) {
  const ReferenceLayerOutput output = reference_layer(
      four_heads_over_two(QkvLayout::kFused, {{"c_attn.weight", counting_rows(8)}, {"c_proj.weight", kUnit}}));
  expect_near(output.q, {1, 2, 3, 4});
  expect_near(output.k, {5, 6});
  expect_near(output.v, {7, 8});
  expect_near(output.output, {7, 7, 8, 8});
}

TEST(ReferenceLayer, FusedPerHeadHasTheQueryHeadsOfAKeyHeadThenItsKeyAndValue) {
  const ReferenceLayerOutput output = reference_layer(
      four_heads_over_two(QkvLayout::kFusedPerHead, {{"qkv_proj.weight", counting_rows(8)}, {"o_proj.weight", kUnit}}));
  expect_near(output.q, {1, 2, 5, 6});
  expect_near(output.k, {3, 7});
  expect_near(output.v, {4, 8});
  expect_near(output.output, {4, 4, 8, 8});
}

TEST(ReferenceLayer, KeysAndValuesComeFromTheMemory) {
  ReferenceLayerInput input = two_heads(QkvLayout::kSeparate, kSeparateMeans);
  input.config.causal = false;
  input.T_k = 2;
  input.memory = {2, 4, 6, 8};  // means 4 and 6
  const ReferenceLayerOutput output = reference_layer(input);
  expect_near(output.context, {4, 4, 4, 6, 6, 6});
  input.real_keys = {true, false};
  expect_near(reference_layer(input).context, {2, 2, 2, 4, 4, 4});
}

// ---- against modules written in PyTorch's Python, and the `transformers` package's own ----

/// The models of scripts/model_layers.py, each a file.
std::vector<std::string> every_fixture() {
  std::vector<std::string> names = test::attention_fixtures();
  for (const auto& file : std::filesystem::directory_iterator("tests/data")) {
    const std::string name = file.path().stem().string();
    if (name.starts_with("model_")) names.push_back(name);
  }
  return names;
}

/// (B, keys), or undefined without padding.
at::Tensor real_keys_of(const RunConfig& config) {
  if (!config.padding.has_value()) return {};
  at::Tensor real_keys = at::empty({config.B, key_length(config)}, at::kBool);
  for (std::int64_t b = 0; b < config.B; ++b) {
    for (std::int64_t j = 0; j < key_length(config); ++j) real_keys[b][j] = is_real_key(config, b, j);
  }
  return real_keys;
}

class ReferenceFixture : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fixture = test::load_fixture(GetParam());
    limit = fixture.at("x").scalar_type() == at::kFloat ? 1e-6 : 1e-12;
    real_keys = real_keys_of(fixture.config);
    // Rows that see no key are 0 here; the models give them the mean of all values, which nobody reads.
    const at::Tensor visible = declared_mask(fixture.config.attention, fixture.at("x").size(1),
                                             key_length(fixture.config), real_keys, at::kCPU);
    const at::Tensor sees_a_key = visible.any(-1, /*keepdim=*/true);  // (B or 1, 1, T, 1)
    fixture.tensors["expected.weights"] = fixture.at("expected.weights") * sees_a_key;
    fixture.tensors["expected.output"] = fixture.at("expected.output") * sees_a_key.squeeze(1);
  }

  void expect_close(const std::vector<double>& actual, const std::string& name) const {
    const at::Tensor expected = fixture.at(name);
    const at::Tensor found = at::tensor(actual, at::kDouble).view(expected.sizes());
    EXPECT_LE(test::max_difference(found, expected), test::limit_for(expected, limit)) << name;
  }

  test::LayerFixture fixture;
  at::Tensor real_keys;
  double limit = 0.0;
};

TEST_P(ReferenceFixture, LoopsGiveOutputWeightsAndEveryGradient) {
  ReferenceLayerInput input;
  input.config = fixture.config.attention;
  input.B = fixture.at("x").size(0);
  input.T = fixture.at("x").size(1);
  input.x = numbers_of(fixture.at("x"));
  if (fixture.config.memory_length.has_value()) {
    input.T_k = *fixture.config.memory_length;
    input.memory = numbers_of(fixture.at("memory"));
  }
  if (real_keys.defined()) input.real_keys = flags_of(real_keys);
  for (const ParameterShape& parameter : reference_parameters(input.config)) {
    ASSERT_EQ(fixture.at(parameter.name).sizes(), at::IntArrayRef(parameter.shape)) << parameter.name;
    input.parameters[parameter.name] = numbers_of(fixture.at(parameter.name));
  }
  const ReferenceLayerOutput output = reference_layer(input);
  expect_close(output.output, "expected.output");
  expect_close(output.weights, "expected.weights");
  if (fixture.config.cache.has_value()) return;  // those have no gradients
  const ReferenceLayerGradients gradients = backward(input, numbers_of(fixture.at("gradient.output")));
  expect_close(gradients.x, "gradient.x");
  if (input.T_k != 0) expect_close(gradients.memory, "gradient.memory");
  for (const auto& [name, gradient] : gradients.parameters) expect_close(gradient, "gradient." + name);
  // expected.output, expected.weights, gradient.output; x, memory and each parameter with its gradient
  EXPECT_EQ(fixture.tensors.size(), 3 + 2 * (1 + (input.T_k != 0 ? 1 : 0) + gradients.parameters.size()));
}

TEST_P(ReferenceFixture, ThePlainLayerGivesTheSame) {
  LayerInput input{fixture.config.attention, fixture.at("x"), {}, {}, real_keys};
  if (fixture.config.memory_length.has_value()) input.memory = fixture.at("memory");
  for (const ParameterShape& parameter : reference_parameters(input.config)) {
    input.parameters[parameter.name] = fixture.at(parameter.name);
  }
  const PlainLayerOutput output = plain_layer(input, rules_of(input.config));
  expect_close(numbers_of(output.output), "expected.output");
  expect_close(numbers_of(output.weights), "expected.weights");
  if (fixture.config.cache.has_value()) return;
  for (const auto& [name, gradient] :
       plain_layer_backward(input, rules_of(input.config), fixture.at("gradient.output"))) {
    expect_close(numbers_of(gradient), "gradient." + name);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ReferenceFixture, ::testing::ValuesIn(every_fixture()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace attn
