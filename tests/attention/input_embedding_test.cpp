#include "attention/input_embedding.h"

#include <ATen/core/grad_mode.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;

template <typename ExpectedError, typename Work>
std::string error_text(Work work) {
  try {
    work();
  } catch (const ExpectedError& error) {
    return error.what();
  }
  return "no such error";
}

TEST(InputEmbedding, MapsTokenIdsToVectors) {
  InputEmbedding embedding(10, 4, 8);
  EXPECT_EQ(embedding->forward(at::zeros({2, 5}, at::kLong)).sizes(), at::IntArrayRef({2, 5, 4}));
}

TEST(InputEmbedding, AddsTheTokensVectorAndThePositionsVector) {
  InputEmbedding embedding(3, 2, 4);
  const at::NoGradGuard no_grad;
  auto parameters = embedding->named_parameters();
  parameters["token_embedding.weight"].copy_(test::tensor_of({3, 2}, {1, 2, 3, 4, 5, 6}));
  parameters["position_embedding.weight"].copy_(test::tensor_of({4, 2}, {10, 20, 30, 40, 50, 60, 70, 80}));
  const at::Tensor x = embedding->forward(test::tensor_of({1, 3}, {2, 0, 2}).to(at::kLong));
  EXPECT_TRUE(identical(x, test::tensor_of({1, 3, 2}, {15, 26, 31, 42, 55, 66}).to(at::kFloat)));
}

TEST(InputEmbedding, WithoutPositionsTheSameTokenIsTheSameVectorEverywhere) {
  InputEmbedding embedding(3, 2, 4, Positions::kNone);
  const at::Tensor x = embedding->forward(at::ones({1, 4}, at::kLong));
  EXPECT_TRUE(identical(x, x.slice(1, 0, 1).expand({1, 4, 2}).contiguous()));
  EXPECT_EQ(embedding->named_parameters().size(), 1U);
}

TEST(InputEmbedding, SinusoidsAreThoseOfThePaper) {
  InputEmbedding embedding(1, 6, 50, Positions::kSinusoidal);
  test::CapturingObserver observer;
  embedding->forward(at::zeros({1, 50}, at::kLong), &observer);
  const at::Tensor table = observer.at(Step::kPositionEmbedding);
  for (std::int64_t place = 0; place < 50; ++place) {
    for (std::int64_t pair = 0; pair < 3; ++pair) {
      const double angle = static_cast<double>(place) / std::pow(10000.0, 2.0 * static_cast<double>(pair) / 6.0);
      EXPECT_NEAR(table[place][2 * pair].item<double>(), std::sin(angle), 1e-7);
      EXPECT_NEAR(table[place][2 * pair + 1].item<double>(), std::cos(angle), 1e-7);
    }
  }
}

TEST(InputEmbedding, SinusoidsAreABufferAndKeepTheDtypeOfTheInput) {
  InputEmbedding embedding(4, 6, 8, Positions::kSinusoidal);
  EXPECT_EQ(embedding->named_parameters().size(), 1U);
  EXPECT_TRUE(embedding->named_buffers().contains("position_table"));
  for (const at::ScalarType dtype : test::kAllDtypes) {
    embedding->to(dtype);
    EXPECT_EQ(embedding->forward(at::zeros({1, 8}, at::kLong)).scalar_type(), dtype);
  }
}

TEST(InputEmbedding, RefusesSizesThatCannotBe) {
  EXPECT_EQ(error_text<ConfigError>([] { InputEmbedding(0, 4, 8); }), "vocab_size must be at least 1, got 0");
  EXPECT_EQ(error_text<ConfigError>([] { InputEmbedding(4, 0, 8); }), "d_model must be at least 1, got 0");
  EXPECT_EQ(error_text<ConfigError>([] { InputEmbedding(4, 4, -1); }), "max_seq_len must be at least 1, got -1");
  EXPECT_EQ(error_text<ConfigError>([] { InputEmbedding(4, 5, 8, Positions::kSinusoidal); }),
            "sinusoidal positions need an even d_model, got 5");
}

TEST(InputEmbedding, RefusesTokensThatDoNotFit) {
  InputEmbedding embedding(10, 4, 3);
  const auto refusal = [&](const at::Tensor& tokens) {
    return error_text<ShapeError>([&] { embedding->forward(tokens); });
  };
  EXPECT_EQ(refusal(at::zeros({1, 4}, at::kLong)), "tokens: T is 4, more than max_seq_len (3)");
  EXPECT_EQ(refusal(at::full({1, 2}, 10, at::kLong)), "tokens: id 10 is outside the vocabulary, 0 to 9");
  EXPECT_EQ(refusal(at::full({1, 2}, -1, at::kLong)), "tokens: id -1 is outside the vocabulary, 0 to 9");
  EXPECT_EQ(refusal(at::zeros({1, 2})), "tokens: ids must be 64-bit integers");
  EXPECT_EQ(refusal(at::zeros({2}, at::kLong)), "tokens: expected shape (-1, -1) (-1 is any), got (2)");
}

TEST(InputEmbedding, IdsUsedTwiceAddTheirGradients) {
  InputEmbedding embedding(3, 2, 4);
  embedding->forward(test::tensor_of({1, 3}, {1, 1, 0}).to(at::kLong)).sum().backward();
  const at::Tensor gradient = embedding->named_parameters()["token_embedding.weight"].grad();
  EXPECT_TRUE(identical(gradient, test::tensor_of({3, 2}, {1, 1, 2, 2, 0, 0}).to(at::kFloat)));
}

TEST(InputEmbedding, PaddingBeforeTheTokensMovesNoToken) {
  for (const Positions positions : {Positions::kLearned, Positions::kSinusoidal}) {
    InputEmbedding embedding(11, 4, 8, positions);
    const at::Tensor tokens = at::tensor({0, 0, 5, 7, 1, 2, 3, 4}, at::kLong).view({2, 4});
    const at::Tensor real = at::tensor({0, 0, 1, 1, 1, 1, 1, 1}, at::kLong).view({2, 4}).to(at::kBool);
    const at::Tensor x = embedding->forward(tokens, nullptr, real);
    const at::Tensor alone = embedding->forward(tokens.slice(0, 0, 1).slice(1, 2));
    EXPECT_TRUE(test::identical(x[0].slice(0, 2), alone[0]));
    EXPECT_TRUE(test::identical(x[1], embedding->forward(tokens.slice(0, 1))[0]));
  }
}

}  // namespace
}  // namespace attn
