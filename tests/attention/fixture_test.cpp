// The layer against modules written in PyTorch's Python after the lessons (scripts/make_fixtures): the only tests that
// see a wrong layout of fused projections or a swapped pair of weights.
#include <ATen/core/grad_mode.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "attention/input_embedding.h"
#include "attention/layer_fixture.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::LayerFixture;

double relative_limit(const at::Tensor& x) { return x.scalar_type() == at::kFloat ? 1e-6 : 1e-12; }

void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_TRUE(actual.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  EXPECT_EQ(actual.scalar_type(), expected.scalar_type()) << what;
  EXPECT_LE(test::max_difference(actual, expected), test::limit_for(expected, relative_limit(expected))) << what;
}

class AttentionFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(AttentionFixture, OutputWeightsAndEveryGradientAgree) {
  const LayerFixture fixture = test::load_fixture(GetParam());
  const auto layer = test::make_fixture_layer(fixture);
  const at::Tensor x = fixture.at("x").clone().requires_grad_();

  const AttentionOutput result = layer->forward(x);
  (result.output * fixture.at("gradient.output")).sum().backward();

  expect_close(result.output, fixture.at("expected.output"), "output");
  expect_close(result.weights.value(), fixture.at("expected.weights"), "weights");
  expect_close(x.grad(), fixture.at("gradient.x"), "gradient of x");
  std::size_t compared = 0;
  for (const auto& parameter : layer->named_parameters()) {
    expect_close(parameter.value().grad(), fixture.at("gradient." + parameter.key()), "gradient of " + parameter.key());
    ++compared;
  }
  // Everything in the file was used: x, expected.output, expected.weights, gradient.output, gradient.x and each
  // parameter with its gradient.
  EXPECT_EQ(fixture.tensors.size(), 5 + 2 * compared);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, AttentionFixture, ::testing::ValuesIn(test::attention_fixtures()),
                         [](const auto& test) { return test.param; });

class EmbeddingFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(EmbeddingFixture, InputAndEveryGradientAgree) {
  const LayerFixture fixture = test::load_fixture(GetParam());
  const RunConfig& config = fixture.config;
  InputEmbedding embedding(config.embedding.value().vocab_size, config.attention.d_model, config.attention.max_seq_len,
                           config.embedding->positions);
  embedding->to(fixture.at("expected.x").scalar_type());
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : embedding->named_parameters()) parameter.value().copy_(fixture.at(parameter.key()));
  }

  const at::Tensor x = embedding->forward(fixture.at("tokens"));
  (x * fixture.at("gradient.x")).sum().backward();

  expect_close(x, fixture.at("expected.x"), "x");
  std::size_t compared = 0;
  for (const auto& parameter : embedding->named_parameters()) {
    expect_close(parameter.value().grad(), fixture.at("gradient." + parameter.key()), "gradient of " + parameter.key());
    ++compared;
  }
  EXPECT_EQ(fixture.tensors.size(), 3 + 2 * compared);
}

const std::vector<std::string> kEmbeddingFixtures = {"embedding_learned_f32", "embedding_learned_f64",
                                                     "embedding_sinusoidal_f32", "embedding_none_f32"};

INSTANTIATE_TEST_SUITE_P(Fixtures, EmbeddingFixture, ::testing::ValuesIn(kEmbeddingFixtures),
                         [](const auto& test) { return test.param; });

TEST(Fixtures, EveryFileIsTested) {
  std::set<std::string> tested(kEmbeddingFixtures.begin(), kEmbeddingFixtures.end());
  for (const std::string& name : test::attention_fixtures()) tested.insert(name);
  for (const auto& file : std::filesystem::directory_iterator("tests/data")) {
    const std::string name = file.path().stem().string();
    if (name.starts_with("attention_") || name.starts_with("embedding_")) {
      EXPECT_TRUE(tested.contains(name)) << name;
    }
  }
}

}  // namespace
}  // namespace attn
