// What a layer hides: causal AND window AND its own mask AND padding, item by item.
#include <gtest/gtest.h>

#include "attention/multi_head_attention.h"
#include "attention/single_head_attention.h"
#include "attention/small_config.h"
#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;
using test::small_config;
using test::tensor_of;

/// A layer whose scores are all 0, so that its weights are what the mask leaves.
AttentionOutput flat(const AttentionConfig& config, const AttentionInput& input) {
  MultiHeadAttention layer(config);
  const at::NoGradGuard no_grad;
  for (auto& parameter : layer->named_parameters()) parameter.value().zero_();
  return layer->forward(input);
}

at::Tensor real_keys(const std::vector<std::vector<double>>& items) {
  std::vector<at::Tensor> rows;
  for (const std::vector<double>& item : items) rows.push_back(at::tensor(item, at::kDouble).to(at::kBool));
  return at::stack(rows);
}

// keras PR #23040: with a padding mask given, the causal one was dropped.
TEST(LayerMasks, PaddingDoesNotSwitchCausalOff) {
  const at::Tensor x = random_tensor({1, 4, 12}, 1, at::kFloat);
  const AttentionOutput result = flat(small_config(), {.x = x, .real_keys = real_keys({{1, 1, 1, 0}})});
  const double third = 1.0 / 3.0;
  const at::Tensor expected =
      tensor_of({4, 4}, {1, 0, 0, 0, 0.5, 0.5, 0, 0, third, third, third, 0, third, third, third, 0});
  EXPECT_LE(max_difference((*result.weights)[0][0], expected), 1e-7);
}

TEST(LayerMasks, AnOwnMaskDoesNotSwitchCausalOff) {
  AttentionConfig config = small_config();
  config.mask = RowsMask{3, 3, std::vector<bool>(9, true), {}, ""};
  const AttentionOutput result = flat(config, {.x = random_tensor({1, 3, 12}, 1, at::kFloat)});
  const double third = 1.0 / 3.0;
  EXPECT_LE(max_difference((*result.weights)[0][0], tensor_of({3, 3}, {1, 0, 0, 0.5, 0.5, 0, third, third, third})),
            1e-7);
}

// attention-is-all-you-need-keras #36: each item has its own mask, in every head.
TEST(LayerMasks, EveryItemHasItsOwnPaddingInEveryHead) {
  AttentionConfig config = small_config();
  config.causal = false;
  const AttentionOutput result =
      flat(config, {.x = random_tensor({2, 3, 12}, 1, at::kFloat), .real_keys = real_keys({{1, 0, 0}, {0, 1, 1}})});
  for (std::int64_t head = 0; head < 3; ++head) {
    for (std::int64_t query = 0; query < 3; ++query) {
      EXPECT_LE(max_difference((*result.weights)[0][head][query], tensor_of({3}, {1, 0, 0})), 1e-7);
      EXPECT_LE(max_difference((*result.weights)[1][head][query], tensor_of({3}, {0, 0.5, 0.5})), 1e-7);
    }
  }
}

TEST(LayerMasks, RealTokensComeOutAsTheItemAlone) {
  for (const bool causal : {true, false}) {
    for (const bool left : {true, false}) {
      AttentionConfig config = small_config();
      config.causal = causal;
      config.rope = RopeConfig{};
      MultiHeadAttention layer(config);
      const at::Tensor x = random_tensor({2, 6, 12}, 1, at::kFloat);
      const at::Tensor real = left ? real_keys({{0, 0, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}})
                                   : real_keys({{1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 1, 1}});
      const at::Tensor output = layer->forward({.x = x, .real_keys = real}).output;
      const std::int64_t first = left ? 2 : 0;
      const at::Tensor alone = layer->forward(x.slice(0, 0, 1).slice(1, first, first + 4)).output;
      EXPECT_LE(max_difference(output[0].slice(0, first, first + 4), alone[0]), 1e-6) << causal << left;
    }
  }
}

TEST(LayerMasks, ARowWithoutAKeyIsZeroWithFiniteGradients) {
  MultiHeadAttention layer(small_config());
  const at::Tensor x = random_tensor({1, 4, 12}, 1, at::kFloat).requires_grad_();
  test::CapturingObserver observer;
  const AttentionOutput result = layer->forward({.x = x, .real_keys = real_keys({{0, 0, 1, 1}})}, &observer);
  EXPECT_TRUE(identical(result.weights->slice(2, 0, 2), at::zeros({1, 3, 2, 4})));
  EXPECT_TRUE(identical(observer.at(Step::kContext).slice(2, 0, 2), at::zeros({1, 3, 2, 4})));
  result.output.sum().backward();
  EXPECT_TRUE(test::all_finite(x.grad()));
  for (const auto& parameter : layer->named_parameters()) EXPECT_TRUE(test::all_finite(parameter.value().grad()));
}

TEST(LayerMasks, ASingleHeadLayerTakesPaddingToo) {
  AttentionConfig config = small_config();
  config.H = 1;
  SingleHeadAttention layer(config);
  const at::Tensor x = random_tensor({2, 3, 12}, 1, at::kFloat), real = real_keys({{1, 1, 0}, {1, 1, 1}});
  EXPECT_EQ(layer->mask({3, 3}, real)->sizes(), at::IntArrayRef({2, 3, 3}));
  const AttentionOutput result = layer->forward({.x = x, .real_keys = real});
  EXPECT_TRUE(identical((*result.weights)[0].select(1, 2), at::zeros({3})));
}

TEST(LayerMasks, WithThemRemovedOnlyPaddingHides) {
  AttentionConfig config = small_config();
  config.window = 2;
  config.mask = DocumentMask{{2, 2}};
  MultiHeadAttention layer(config);
  EXPECT_EQ(layer->mask({4, 4})->sum().item<std::int64_t>(), 6);
  layer->remove_masks();
  EXPECT_FALSE(layer->mask({4, 4}).has_value());
  EXPECT_EQ(layer->mask({4, 4}, real_keys({{1, 1, 1, 0}}))->sum().item<std::int64_t>(), 12);
}

TEST(LayerMasks, RealKeysOfAnotherShapeOrKindAreRefused) {
  MultiHeadAttention layer(small_config());
  const at::Tensor x = random_tensor({2, 2, 12}, 1, at::kFloat);
  // (B, T) of equal sizes would broadcast as a (T_q, T_k) mask without a word: here the shape has a meaning.
  EXPECT_THROW(layer->forward({.x = x, .real_keys = at::ones({2, 3}, at::kBool)}), ShapeError);
  EXPECT_THROW(layer->forward({.x = x, .real_keys = at::ones({2, 2}, at::kFloat)}), ShapeError);
}

}  // namespace
}  // namespace attn
