// What some models do to the scores: cap them, bias them, give the softmax a sink, norm q and k, another scale.
#include <gtest/gtest.h>

#include <cmath>

#include "attention/alibi.h"
#include "attention/multi_head_attention.h"
#include "attention/small_config.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;
using test::small_config;
using test::tensor_of;

AttentionCoreOutput attend_zero_scores(std::int64_t keys, const AttentionCoreOptions& options) {
  const at::Tensor q = at::zeros({1, 1, 1, 2}, at::kDouble), k = at::zeros({1, 1, keys, 2}, at::kDouble);
  return scaled_dot_product_attention(q, k, at::ones({1, 1, keys, 2}, at::kDouble), options);
}

// The case of vllm-metal PR #550: two keys of score 0 and a sink of score 0 share alike.
TEST(Sink, TakesItsShareAndGivesNothing) {
  AttentionCoreOptions options;
  options.sink = at::zeros({1}, at::kDouble);
  const AttentionCoreOutput two = attend_zero_scores(2, options);
  EXPECT_LE(max_difference(*two.weights, at::full({1, 1, 1, 2}, 1.0 / 3.0, at::kDouble)), 1e-16);
  EXPECT_LE(max_difference(two.context, at::full({1, 1, 1, 2}, 2.0 / 3.0, at::kDouble)), 1e-15);
  EXPECT_LE(max_difference(*attend_zero_scores(1, options).weights, at::full({1, 1, 1, 1}, 0.5, at::kDouble)), 1e-16);
}

TEST(Sink, OfEachHeadIsItsOwn) {
  AttentionCoreOptions options;
  options.sink = tensor_of({2}, {0.0, std::log(3.0)});
  const at::Tensor q = at::zeros({1, 2, 1, 2}, at::kDouble), k = at::zeros({1, 2, 1, 2}, at::kDouble);
  const at::Tensor weights = *scaled_dot_product_attention(q, k, k, options).weights;
  EXPECT_LE(max_difference(weights.flatten(), tensor_of({2}, {0.5, 0.25})), 1e-15);
}

TEST(Sink, TakesAllOfARowWithoutAKeyAndGradientsStayFinite) {
  const at::Tensor q = random_tensor({1, 1, 2, 2}, 1).requires_grad_(), k = random_tensor({1, 1, 2, 2}, 2);
  AttentionCoreOptions options;
  options.sink = at::ones({1}, at::kDouble).requires_grad_();
  options.mask = tensor_of({2, 2}, {0, 0, 1, 1}).to(at::kBool);
  const AttentionCoreOutput result = scaled_dot_product_attention(q, k, k, options);
  EXPECT_TRUE(identical((*result.weights)[0][0][0], at::zeros({2}, at::kDouble)));
  result.context.sum().backward();
  EXPECT_TRUE(test::all_finite(q.grad()));
  EXPECT_TRUE(test::all_finite(options.sink->grad()));
  EXPECT_NE(options.sink->grad().item<double>(), 0.0);
}

TEST(Softcap, IsAppliedAfterTheScaleAndBeforeTheMask) {
  const at::Tensor q = random_tensor({1, 1, 3, 4}, 1) * 10, k = random_tensor({1, 1, 3, 4}, 2) * 10;
  AttentionCoreOptions options;
  options.scale = 0.5;
  options.softcap = 3.0;
  options.mask = causal_mask(3, 3);
  test::CapturingObserver observer;
  AttentionCore().attend(q, k, k, options, &observer);
  const at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * 0.5;
  EXPECT_LE(max_difference(observer.at(Step::kScaledScores), scores), 1e-13);
  EXPECT_LE(max_difference(observer.at(Step::kCappedScores), 3.0 * (scores / 3.0).tanh()), 1e-14);
  EXPECT_LE(test::largest(observer.at(Step::kCappedScores)), 3.0);
  // A cap on -inf would be a weight.
  EXPECT_TRUE(observer.at(Step::kMaskedScores)[0][0][0][1].isinf().item<bool>());
  EXPECT_EQ(observer.at(Step::kWeights)[0][0][0][1].item<double>(), 0.0);
}

TEST(AlibiLayer, AddsTheBiasToTheScaledScores) {
  AttentionConfig config = small_config();
  config.alibi = true;
  config.softcap = 2.0;
  MultiHeadAttention layer(config);
  test::CapturingObserver observer;
  layer->forward(AttentionInput{random_tensor({2, 5, 12}, 1, at::kFloat)}, &observer);
  EXPECT_LE(max_difference(observer.at(Step::kBiasedScores) - observer.at(Step::kCappedScores),
                           alibi_bias(3, 5, 5, at::kFloat).expand({2, 3, 5, 5})),
            1e-6);
}

TEST(QkNorm, GivesQueriesAndKeysARootMeanSquareOfOne) {
  AttentionConfig config = small_config();
  config.qk_norm = true;
  MultiHeadAttention layer(config);
  test::CapturingObserver observer;
  layer->forward(AttentionInput{random_tensor({2, 5, 12}, 1, at::kFloat) * 100}, &observer);
  for (const Step step : {Step::kQNormed, Step::kKNormed}) {
    const at::Tensor size = observer.at(step).square().mean(-1).sqrt();
    EXPECT_LE(max_difference(size, at::ones_like(size)), 1e-5) << step_name(step);
  }
}

TEST(QkNorm, KnownAnswer) {
  RmsNorm norm(2, 1e-6);
  {
    const at::NoGradGuard no_grad;
    norm->named_parameters()["weight"].copy_(tensor_of({2}, {1.0, 10.0}));
  }
  norm->to(at::kDouble);
  // mean of squares (9 + 16) / 2 = 12.5
  const double size = std::sqrt(12.5 + 1e-6);
  EXPECT_LE(max_difference(norm->forward(tensor_of({1, 2}, {3, 4})), tensor_of({1, 2}, {3 / size, 40 / size})), 1e-12);
}

TEST(QkNorm, ComesBeforeTheRotation) {
  AttentionConfig config = small_config();
  config.qk_norm = true;
  config.rope = RopeConfig{};
  MultiHeadAttention layer(config);
  test::CapturingObserver observer;
  layer->forward(AttentionInput{random_tensor({1, 3, 12}, 1, at::kFloat)}, &observer);
  const std::vector<std::string> names = observer.names();
  const std::vector<std::string> expected{"x",
                                          "qkv",
                                          "q",
                                          "k",
                                          "v",
                                          "q_normed",
                                          "k_normed",
                                          "q_rotated",
                                          "k_rotated",
                                          "scores",
                                          "scaled_scores",
                                          "masked_scores",
                                          "weights",
                                          "dropped_weights",
                                          "context",
                                          "merged",
                                          "projected",
                                          "output"};
  EXPECT_EQ(names, expected);
  EXPECT_TRUE(identical(observer.at(Step::kQRotated).select(2, 0), observer.at(Step::kQNormed).select(2, 0)));
}

TEST(Scale, IsTheGivenOne) {
  AttentionConfig config = small_config();
  config.given_scale = 0.3;
  MultiHeadAttention layer(config);
  test::CapturingObserver observer;
  layer->forward(AttentionInput{random_tensor({1, 3, 12}, 1, at::kFloat)}, &observer);
  EXPECT_TRUE(identical(observer.at(Step::kScaledScores), observer.at(Step::kScores) * 0.3));
}

TEST(ScoreOptions, OldLayersKeepTheirNumbersWhenNewParametersAreDrawn) {
  at::manual_seed(5);
  MultiHeadAttention plain(small_config());
  AttentionConfig config = small_config();
  config.sink = true;
  config.qk_norm = true;
  at::manual_seed(5);
  MultiHeadAttention more(config);
  EXPECT_TRUE(identical(plain->named_parameters()["c_proj.weight"], more->named_parameters()["c_proj.weight"]));
  EXPECT_EQ(more->named_parameters()["sinks"].sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(more->named_parameters()["q_norm.weight"].sizes(), at::IntArrayRef({4}));
}

}  // namespace
}  // namespace attn
