// Cross-attention: queries from x, keys and values from a memory of another length.
#include <gtest/gtest.h>

#include "attention/multi_head_attention.h"
#include "attention/small_config.h"
#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;

AttentionConfig cross_config() {
  AttentionConfig config = test::small_config();
  config.qkv = QkvLayout::kSeparate;
  config.causal = false;
  return config;
}

std::string error_text(const AttentionConfig& config, const AttentionInput& input) {
  MultiHeadAttention layer(config);
  try {
    layer->forward(input);
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no error";
}

const at::Tensor kX = random_tensor({2, 4, 12}, 1, at::kFloat), kMemory = random_tensor({2, 7, 12}, 2, at::kFloat);

TEST(Memory, GivesKeysAndValuesOfItsOwnLength) {
  MultiHeadAttention layer(cross_config());
  test::CapturingObserver observer;
  const AttentionOutput result = layer->forward({.x = kX, .memory = kMemory}, &observer);
  EXPECT_EQ(result.output.sizes(), at::IntArrayRef({2, 4, 12}));
  EXPECT_EQ(result.weights->sizes(), at::IntArrayRef({2, 3, 4, 7}));
  EXPECT_EQ(observer.at(Step::kQProj).sizes(), at::IntArrayRef({2, 4, 12}));
  EXPECT_EQ(observer.at(Step::kKProj).sizes(), at::IntArrayRef({2, 7, 12}));
  EXPECT_TRUE(identical(observer.at(Step::kMemory), kMemory));
}

TEST(Memory, OfXItselfIsSelfAttention) {
  MultiHeadAttention layer(cross_config());
  EXPECT_TRUE(identical(layer->forward({.x = kX, .memory = kX}).output, layer->forward(kX).output));
}

TEST(Memory, PaddingInItIsSeenByNoQuery) {
  MultiHeadAttention layer(cross_config());
  at::Tensor real = at::ones({2, 7}, at::kBool);
  real.slice(1, 5).fill_(false);
  at::Tensor other = kMemory.clone();
  other.slice(1, 5).fill_(100.0);
  const at::Tensor output = layer->forward({.x = kX, .memory = kMemory, .real_keys = real}).output;
  EXPECT_TRUE(identical(layer->forward({.x = kX, .memory = other, .real_keys = real}).output, output));
  EXPECT_LE(max_difference(layer->forward({.x = kX, .memory = kMemory.slice(1, 0, 5)}).output, output), 1e-6);
}

TEST(Memory, IsRefusedWhereItHasNoPlace) {
  AttentionConfig fused = cross_config();
  fused.qkv = QkvLayout::kFused;
  EXPECT_EQ(error_text(fused, {.x = kX, .memory = kMemory}),
            "memory: expected the separate qkv layout, got fused, which makes q, k and v of one tensor");
  AttentionConfig causal = cross_config();
  causal.causal = true;
  const std::string no_place =
      "memory: its tokens have no place in the sequence of x, expected a layer without causal mask, window, rope, "
      "alibi and cache";
  EXPECT_EQ(error_text(causal, {.x = kX, .memory = kMemory}), no_place);
  AttentionConfig turned = cross_config();
  turned.rope = RopeConfig{};
  EXPECT_EQ(error_text(turned, {.x = kX, .memory = kMemory}), no_place);
  EXPECT_EQ(error_text(cross_config(), {.x = kX, .memory = at::zeros({3, 7, 12})}),
            "memory: expected shape (2, -1, 12) (-1 is any), got (3, 7, 12)");
  EXPECT_EQ(error_text(cross_config(), {.x = kX, .memory = at::zeros({2, 17, 12})}),
            "memory: T_k is 17, more than max_seq_len (16)");
}

}  // namespace
}  // namespace attn
