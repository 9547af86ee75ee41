#include "attention/single_head_attention.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::random_tensor;

TEST(SingleHeadCausalAttention, HasFourProjectionsWithoutBias) {
  const SingleHeadCausalAttention layer(8, 5, 16);
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& parameter : layer->named_parameters()) shapes[parameter.key()] = parameter.value().sizes().vec();
  const std::map<std::string, std::vector<std::int64_t>> expected = {
      {"q_proj.weight", {5, 8}}, {"k_proj.weight", {5, 8}}, {"v_proj.weight", {5, 8}}, {"o_proj.weight", {8, 5}}};
  EXPECT_EQ(shapes, expected);
}

TEST(SingleHeadCausalAttention, HasNoHeadAxisAnywhere) {
  SingleHeadCausalAttention layer(8, 5, 16);
  test::CapturingObserver observer;
  const AttentionOutput result = layer->forward(AttentionInput{random_tensor({2, 7, 8}, 1, at::kFloat)}, &observer);
  EXPECT_EQ(result.output.sizes(), at::IntArrayRef({2, 7, 8}));
  EXPECT_EQ(result.weights.value().sizes(), at::IntArrayRef({2, 7, 7}));
  for (const Step step : {Step::kQ, Step::kK, Step::kV, Step::kContext, Step::kMerged}) {
    EXPECT_EQ(observer.at(step).sizes(), at::IntArrayRef({2, 7, 5})) << step_name(step);
  }
}

TEST(SingleHeadCausalAttention, IsCausal) {
  SingleHeadCausalAttention layer(8, 5, 16);
  const at::Tensor weights = layer->forward(random_tensor({2, 7, 8}, 1, at::kFloat)).weights.value();
  EXPECT_EQ(test::largest(weights.triu(1)), 0.0);
  EXPECT_LE(test::max_difference(weights.sum(-1), at::ones({2, 7})), 1e-6);
}

TEST(SingleHeadCausalAttention, RefusesASequenceLongerThanItsMask) {
  SingleHeadCausalAttention layer(8, 5, 4);
  EXPECT_THROW(layer->forward(at::zeros({1, 5, 8})), ShapeError);
}

TEST(SingleHeadAttention, RefusesMoreThanOneHead) {
  AttentionConfig config;
  config.d_model = 8;
  config.H = 2;
  EXPECT_THROW(SingleHeadAttention{config}, ConfigError);
}

TEST(SingleHeadAttention, AgreesWithAMultiHeadLayerOfOneHeadInEveryLayout) {
  for (const QkvLayout layout : {QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate}) {
    AttentionConfig config;
    config.d_model = 8;
    config.H = 1;
    config.given_d_k = 5;
    config.bias = true;
    config.qkv = layout;
    at::manual_seed(1);
    SingleHeadAttention single(config);
    at::manual_seed(1);
    MultiHeadAttention multi(config);
    single->to(at::kDouble);
    multi->to(at::kDouble);
    const at::Tensor x = random_tensor({2, 6, 8}, 1);
    const AttentionOutput one = single->forward(x);
    const AttentionOutput other = multi->forward(x);
    EXPECT_LE(test::max_difference(one.output, other.output), 1e-14) << to_string(layout);
    EXPECT_LE(test::max_difference(one.weights.value(), other.weights.value().squeeze(1)), 1e-14) << to_string(layout);
  }
}

}  // namespace
}  // namespace attn
