// Listening to a layer: every step by its name, in its order, without touching the result.
#include <gtest/gtest.h>

#include <set>

#include "attention/input_embedding.h"
#include "attention/single_head_attention.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::CapturingObserver;
using test::identical;
using Names = std::vector<std::string>;

const Names kCoreNames = {
    "q",       "k",      "v",         "scores", "scaled_scores", "masked_scores", "weights", "dropped_weights",
    "context", "merged", "projected", "output"};

Names with_core(Names names) {
  names.insert(names.end(), kCoreNames.begin(), kCoreNames.end());
  return names;
}

/// A layer of every kind, and the steps that it announces.
struct ObservedLayer {
  std::string name;
  AttentionConfig config;
  Names steps;
};

AttentionConfig small(QkvLayout layout, ModuleKind module = ModuleKind::kMultiHead) {
  AttentionConfig config;
  config.module = module;
  config.d_model = 12;
  config.H = module == ModuleKind::kSingleHead ? 1 : 3;
  config.qkv = layout;
  config.bias = true;
  config.max_seq_len = 8;
  return config;
}

AttentionConfig not_causal(AttentionConfig config) {
  config.causal = false;
  return config;
}

AttentionConfig with_dropout(AttentionConfig config) {
  config.dropout = 0.5;
  return config;
}

const std::vector<ObservedLayer> kLayers = {
    {"Fused", small(QkvLayout::kFused), with_core({"x", "qkv"})},
    {"FusedPerHead", small(QkvLayout::kFusedPerHead), with_core({"x", "qkv"})},
    {"Separate", small(QkvLayout::kSeparate), with_core({"x", "q_proj", "k_proj", "v_proj"})},
    {"SingleHeadSeparate", small(QkvLayout::kSeparate, ModuleKind::kSingleHead),
     with_core({"x", "q_proj", "k_proj", "v_proj"})},
    {"SingleHeadFused", small(QkvLayout::kFused, ModuleKind::kSingleHead), with_core({"x", "qkv"})},
    {"NotCausal", not_causal(small(QkvLayout::kFused)), with_core({"x", "qkv"})},
    {"Dropout", with_dropout(small(QkvLayout::kFused)), with_core({"x", "qkv"})},
};

class Observed : public ::testing::TestWithParam<ObservedLayer> {
 protected:
  std::shared_ptr<MultiHeadAttentionImpl> make() const {
    at::manual_seed(1);
    if (GetParam().config.module == ModuleKind::kSingleHead) {
      return std::make_shared<SingleHeadAttentionImpl>(GetParam().config);
    }
    return std::make_shared<MultiHeadAttentionImpl>(GetParam().config);
  }

  at::Tensor x_ = test::random_tensor({2, 5, 12}, 7, at::kFloat).requires_grad_();
};

TEST_P(Observed, StepsComeByNameInOrder) {
  CapturingObserver observer;
  make()->forward(AttentionInput{x_}, &observer);
  EXPECT_EQ(observer.names(), GetParam().steps);
}

TEST_P(Observed, WatchingChangesNoBitInEvalOrTrain) {
  for (const bool train : {false, true}) {
    const auto layer = make();
    layer->train(train);
    at::manual_seed(2);
    const AttentionOutput plain = layer->forward(x_);
    at::manual_seed(2);
    CapturingObserver observer;
    const AttentionOutput watched = layer->forward(AttentionInput{x_}, &observer);
    EXPECT_TRUE(identical(plain.output, watched.output)) << "train " << train;
    EXPECT_TRUE(identical(plain.weights.value(), watched.weights.value())) << "train " << train;
  }
}

TEST_P(Observed, EveryAnnouncedTensorIsItsOwnNodeOfTheBackwardPass) {
  for (const bool train : {false, true}) {
    const auto layer = make();
    layer->train(train);
    CapturingObserver observer;
    layer->forward(AttentionInput{x_}, &observer);
    std::set<const void*> tensors;
    std::set<std::pair<const void*, std::uint32_t>> nodes;
    for (const auto& entry : observer.announced) {
      EXPECT_TRUE(tensors.insert(entry.tensor.unsafeGetTensorImpl()).second) << step_name(entry.step);
      const std::pair node(static_cast<const void*>(entry.tensor.grad_fn().get()),
                           static_cast<std::uint32_t>(entry.tensor.output_nr()));
      EXPECT_TRUE(nodes.insert(node).second) << step_name(entry.step) << ", train " << train;
    }
  }
}

TEST_P(Observed, NoAnnouncedTensorChangesAfterwards) {
  const auto layer = make();
  layer->eval();
  CapturingObserver observer;
  layer->forward(AttentionInput{x_}, &observer).output.sum().backward();
  for (const auto& entry : observer.announced) {
    EXPECT_TRUE(identical(entry.tensor, entry.copy)) << step_name(entry.step);
  }
}

TEST_P(Observed, ReturnedRecordHoldsTheAnnouncedTensors) {
  CapturingObserver observer;
  const AttentionOutput result = make()->forward(AttentionInput{x_}, &observer);
  EXPECT_TRUE(result.output.is_same(observer.at(Step::kOutput)));
  EXPECT_TRUE(result.weights.value().is_same(observer.at(Step::kWeights)));
}

INSTANTIATE_TEST_SUITE_P(Layers, Observed, ::testing::ValuesIn(kLayers),
                         [](const auto& test) { return test.param.name; });

TEST(ObservedEmbedding, AnnouncesTokensAndBothEmbeddings) {
  const at::Tensor tokens = at::arange(6).reshape({2, 3});
  CapturingObserver learned;
  InputEmbedding(6, 4, 8)->forward(tokens, &learned);
  EXPECT_EQ(learned.names(), Names({"tokens", "token_embedding", "position_embedding"}));
  EXPECT_EQ(learned.at(Step::kPositionEmbedding).sizes(), at::IntArrayRef({3, 4}));
  CapturingObserver without_positions;
  InputEmbedding(6, 4, 8, Positions::kNone)->forward(tokens, &without_positions);
  EXPECT_EQ(without_positions.names(), Names({"tokens", "token_embedding"}));
}

TEST(StepNames, AreFoundAgainByName) {
  for (std::size_t index = 0; index < kStepNames.size(); ++index) {
    EXPECT_EQ(find_step(kStepNames[index]), static_cast<Step>(index));
  }
  EXPECT_EQ(find_step("wieghts"), std::nullopt);
}

}  // namespace
}  // namespace attn
