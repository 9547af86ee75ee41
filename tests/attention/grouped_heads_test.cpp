// Grouped heads: query head h uses key head floor(h * H_kv / H), and keys stay as few as they are.
#include <gtest/gtest.h>

#include "attention/multi_head_attention.h"
#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;
using test::tensor_of;

AttentionConfig grouped_config(QkvLayout layout, std::int64_t key_heads) {
  AttentionConfig config;
  config.d_model = 12;
  config.H = 6;
  config.given_H_kv = key_heads;
  config.given_d_k = 4;
  config.qkv = layout;
  config.bias = true;
  config.max_seq_len = 8;
  return config;
}

/// The same keys for every query head of a group: what grouping saves.
at::Tensor repeated(const at::Tensor& key_heads, std::int64_t H) {
  return key_heads.repeat_interleave(H / key_heads.size(1), 1);
}

// onnx/onnx PR #7274: four query heads, two key heads marked 10 and 20.
TEST(GroupedHeads, ServeNeighbours) {
  const at::Tensor q = at::zeros({1, 4, 1, 1}, at::kDouble), k = at::zeros({1, 2, 1, 1}, at::kDouble);
  const at::Tensor v = tensor_of({1, 2, 1, 1}, {10, 20});
  EXPECT_TRUE(identical(scaled_dot_product_attention(q, k, v, AttentionCoreOptions{}).context,
                        tensor_of({1, 4, 1, 1}, {10, 10, 20, 20})));
}

TEST(GroupedHeads, EqualEveryHeadWithItsOwnCopy) {
  for (const std::int64_t key_heads : {1, 2, 3, 6}) {
    const at::Tensor q = random_tensor({2, 6, 5, 4}, 1).requires_grad_();
    const at::Tensor k = random_tensor({2, key_heads, 7, 4}, 2).requires_grad_();
    const at::Tensor v = random_tensor({2, key_heads, 7, 4}, 3).requires_grad_();
    AttentionCoreOptions options;
    options.scale = 0.5;
    options.mask = causal_mask(5, 7);
    const at::Tensor direction = random_tensor({2, 6, 5, 4}, 4);
    const AttentionCoreOutput grouped = scaled_dot_product_attention(q, k, v, options);
    const AttentionCoreOutput copied = scaled_dot_product_attention(q, repeated(k, 6), repeated(v, 6), options);
    EXPECT_LE(max_difference(grouped.context, copied.context), 1e-14) << key_heads;
    EXPECT_LE(max_difference(*grouped.weights, *copied.weights), 1e-14) << key_heads;
    const auto gradients = [&](const at::Tensor& context) {
      return torch::autograd::grad({(context * direction).sum()}, {q, k, v});
    };
    const auto actual = gradients(grouped.context), expected = gradients(copied.context);
    for (std::size_t n = 0; n < 3; ++n) EXPECT_LE(max_difference(actual[n], expected[n]), 1e-13) << key_heads;
  }
}

TEST(GroupedHeads, AreNotCopied) {
  MultiHeadAttention layer(grouped_config(QkvLayout::kSeparate, 2));
  test::CapturingObserver observer;
  layer->forward(AttentionInput{random_tensor({2, 5, 12}, 1, at::kFloat)}, &observer);
  EXPECT_EQ(observer.at(Step::kQ).sizes(), at::IntArrayRef({2, 6, 5, 4}));
  EXPECT_EQ(observer.at(Step::kK).sizes(), at::IntArrayRef({2, 2, 5, 4}));
  EXPECT_EQ(observer.at(Step::kV).sizes(), at::IntArrayRef({2, 2, 5, 4}));
  EXPECT_EQ(observer.at(Step::kScores).sizes(), at::IntArrayRef({2, 6, 5, 5}));
  EXPECT_EQ(layer->named_parameters()["k_proj.weight"].sizes(), at::IntArrayRef({8, 12}));
}

TEST(GroupedHeads, FusedWeightIsAllQueriesThenKeysThenValues) {
  MultiHeadAttention fused(grouped_config(QkvLayout::kFused, 2)), separate(grouped_config(QkvLayout::kSeparate, 2));
  auto from = fused->named_parameters(), to = separate->named_parameters();
  ASSERT_EQ(from["c_attn.weight"].sizes(), at::IntArrayRef({24 + 8 + 8, 12}));
  {
    const at::NoGradGuard no_grad;
    for (const std::string kind : {".weight", ".bias"}) {
      to["q_proj" + kind].copy_(from["c_attn" + kind].slice(0, 0, 24));
      to["k_proj" + kind].copy_(from["c_attn" + kind].slice(0, 24, 32));
      to["v_proj" + kind].copy_(from["c_attn" + kind].slice(0, 32, 40));
      to["o_proj" + kind].copy_(from["c_proj" + kind]);
    }
  }
  const at::Tensor x = random_tensor({2, 5, 12}, 1, at::kFloat);
  EXPECT_LE(max_difference(fused->forward(x).output, separate->forward(x).output), 1e-6);
}

// Falcon's new decoder layout: key head by key head, its three queries, its key, its value, 4 rows each.
TEST(GroupedHeads, FusedPerHeadWeightIsGroupByGroup) {
  MultiHeadAttention fused(grouped_config(QkvLayout::kFusedPerHead, 2)),
      separate(grouped_config(QkvLayout::kSeparate, 2));
  auto from = fused->named_parameters(), to = separate->named_parameters();
  ASSERT_EQ(from["qkv_proj.weight"].sizes(), at::IntArrayRef({40, 12}));
  {
    const at::NoGradGuard no_grad;
    for (const std::string kind : {".weight", ".bias"}) {
      for (std::int64_t group = 0; group < 2; ++group) {
        const at::Tensor rows = from["qkv_proj" + kind].slice(0, 20 * group, 20 * group + 20);
        to["q_proj" + kind].slice(0, 12 * group, 12 * group + 12).copy_(rows.slice(0, 0, 12));
        to["k_proj" + kind].slice(0, 4 * group, 4 * group + 4).copy_(rows.slice(0, 12, 16));
        to["v_proj" + kind].slice(0, 4 * group, 4 * group + 4).copy_(rows.slice(0, 16, 20));
      }
      to["o_proj" + kind].copy_(from["o_proj" + kind]);
    }
  }
  const at::Tensor x = random_tensor({2, 5, 12}, 1, at::kFloat);
  EXPECT_LE(max_difference(fused->forward(x).output, separate->forward(x).output), 1e-6);
}

TEST(GroupedHeads, KeyHeadsThatDoNotDivideAreRefused) {
  const at::Tensor q = at::zeros({1, 4, 2, 3}), k = at::zeros({1, 3, 2, 3});
  EXPECT_THROW(scaled_dot_product_attention(q, k, k, AttentionCoreOptions{}), ShapeError);
  EXPECT_THROW(MultiHeadAttention(grouped_config(QkvLayout::kFused, 4)), ConfigError);
}

}  // namespace
}  // namespace attn
