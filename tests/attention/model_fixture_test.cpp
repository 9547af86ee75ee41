// The layer against the `transformers` package's own attention layers (scripts/model_layers.py): Llama's family, Gemma,
// GPT-2, BERT, Falcon, gpt-oss, BLOOM, BART. What such a model does differently from ours, in order, in a layout, in a
// mask, shows here and nowhere else.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "attention/key_value_cache.h"
#include "attention/layer_fixture.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::LayerFixture;

const std::vector<std::string> kModels = {"llama",   "llama_linear", "llama_llama3", "llama_yarn", "llama_left_padded",
                                          "mistral", "gemma2",       "qwen2",        "qwen3",      "gpt2",
                                          "bert",    "falcon",       "gpt_oss",      "bloom",      "bart_cross"};
const std::vector<std::string> kCachedModels = {"llama_cache", "mistral_cache"};

std::vector<std::string> in_both_dtypes(const std::vector<std::string>& models) {
  std::vector<std::string> names;
  for (const std::string& model : models) {
    for (const std::string dtype : {"_f32", "_f64"}) names.push_back("model_" + model + dtype);
  }
  return names;
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_TRUE(actual.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  ASSERT_EQ(actual.scalar_type(), expected.scalar_type()) << what;
  const double relative = expected.scalar_type() == at::kFloat ? 1e-6 : 1e-12;
  EXPECT_LE(test::max_difference(actual, expected), test::limit_for(expected, relative)) << what;
}

/// (B, keys), or undefined when the config has no padding.
at::Tensor real_keys_of(const RunConfig& config) {
  if (!config.padding) return {};
  at::Tensor real_keys = at::empty({config.B, key_length(config)}, at::kBool);
  for (std::int64_t b = 0; b < config.B; ++b) {
    for (std::int64_t j = 0; j < key_length(config); ++j) real_keys[b][j] = is_real_key(config, b, j);
  }
  return real_keys;
}

/// (B, T_q), whether a query sees a key at all: with padding on the left the first ones of a causal layer do not. There
/// the models give the mean of all values, which nobody reads, and we give 0; their direction in gradient.output is 0.
at::Tensor sees_a_key(const RunConfig& config) {
  at::Tensor sees = at::ones({config.B, config.T}, at::kBool);
  if (config.padding == PaddingSide::kLeft && config.attention.causal) sees = real_keys_of(config);
  return sees;
}

AttentionInput input_of(const LayerFixture& fixture) {
  AttentionInput input{fixture.at("x").clone().requires_grad_()};
  if (fixture.config.memory_length) input.memory = fixture.at("memory").clone().requires_grad_();
  input.real_keys = real_keys_of(fixture.config);
  return input;
}

void expect_gradients(const LayerFixture& fixture, const AttentionInput& input, const MultiHeadAttentionImpl& layer) {
  std::size_t compared = 1;
  expect_close(input.x.grad(), fixture.at("gradient.x"), "gradient of x");
  if (input.memory.defined()) {
    expect_close(input.memory.grad(), fixture.at("gradient.memory"), "gradient of the memory");
    ++compared;
  }
  for (const auto& parameter : layer.named_parameters()) {
    expect_close(parameter.value().grad(), fixture.at("gradient." + parameter.key()), "gradient of " + parameter.key());
    ++compared;
  }
  // Everything in the file was used: each of these with its gradient, expected.output, expected.weights and
  // gradient.output.
  EXPECT_EQ(fixture.tensors.size(), 2 * compared + 3);
}

class ModelFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelFixture, OutputWeightsAndEveryGradientAgree) {
  const LayerFixture fixture = test::load_fixture(GetParam());
  const auto layer = test::make_fixture_layer(fixture);
  const AttentionInput input = input_of(fixture);

  const AttentionOutput result = layer->forward(input);
  (result.output * fixture.at("gradient.output")).sum().backward();

  const at::Tensor sees = sees_a_key(fixture.config).unsqueeze(-1);
  expect_close(result.output, fixture.at("expected.output") * sees, "output");
  expect_close(result.weights.value(), fixture.at("expected.weights") * sees.unsqueeze(1), "weights");
  expect_gradients(fixture, input, *layer);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelFixture, ::testing::ValuesIn(in_both_dtypes(kModels)),
                         [](const auto& test) { return test.param; });

class SdpaModelFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(SdpaModelFixture, OutputAndEveryGradientAgree) {
  LayerFixture fixture = test::load_fixture(GetParam());
  fixture.config.attention.engine = Engine::kSdpa;
  const auto layer = test::make_fixture_layer(fixture);
  const AttentionInput input = input_of(fixture);

  const AttentionOutput result = layer->forward(input);
  (result.output * fixture.at("gradient.output")).sum().backward();

  EXPECT_FALSE(result.weights.has_value());
  expect_close(result.output, fixture.at("expected.output") * sees_a_key(fixture.config).unsqueeze(-1), "output");
  expect_gradients(fixture, input, *layer);
}

/// Softcap and sinks are none of SDPA's.
std::vector<std::string> sdpa_models() {
  std::vector<std::string> models = kModels;
  std::erase(models, "gemma2");
  std::erase(models, "gpt_oss");
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, SdpaModelFixture, ::testing::ValuesIn(in_both_dtypes(sdpa_models())),
                         [](const auto& test) { return test.param; });

class CachedModelFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(CachedModelFixture, EveryStepAgrees) {
  const LayerFixture fixture = test::load_fixture(GetParam());
  const auto layer = test::make_fixture_layer(fixture);
  const CacheConfig plan = fixture.config.cache.value();
  KeyValueCache cache;

  std::vector<at::Tensor> outputs, weights;
  std::int64_t first = 0;
  while (first < fixture.config.T) {
    const std::int64_t last = first + (first == 0 ? plan.prefill : plan.chunk);
    const AttentionOutput step = layer->forward({.x = fixture.at("x").slice(1, first, last), .cache = &cache});
    outputs.push_back(step.output);
    // On all T keys: those that a window let go of come before, those of later steps after.
    const std::int64_t gone = last - step.weights->size(-1);
    weights.push_back(at::constant_pad_nd(*step.weights, {gone, fixture.config.T - last}));
    first = last;
  }

  expect_close(at::cat(outputs, 1), fixture.at("expected.output"), "outputs");
  expect_close(at::cat(weights, 2), fixture.at("expected.weights"), "weights");
}

TEST_P(CachedModelFixture, OnePassOverAllTokensAgreesToo) {
  const LayerFixture fixture = test::load_fixture(GetParam());
  const AttentionOutput result = test::make_fixture_layer(fixture)->forward(fixture.at("x"));
  expect_close(result.output, fixture.at("expected.output"), "outputs");
  expect_close(result.weights.value(), fixture.at("expected.weights"), "weights");
}

INSTANTIATE_TEST_SUITE_P(Models, CachedModelFixture, ::testing::ValuesIn(in_both_dtypes(kCachedModels)),
                         [](const auto& test) { return test.param; });

TEST(ModelFixtures, EveryFileIsTested) {
  std::set<std::string> tested;
  for (const auto& models : {kModels, kCachedModels}) {
    for (const std::string& name : in_both_dtypes(models)) tested.insert(name);
  }
  for (const auto& file : std::filesystem::directory_iterator("tests/data")) {
    const std::string name = file.path().stem().string();
    if (name.starts_with("model_")) {
      EXPECT_EQ(tested.count(name), 1U) << name;
    }
  }
}

}  // namespace
}  // namespace attn
