#include "attention/multi_head_attention.h"

#include <gtest/gtest.h>

#include <map>

#include "attention/mask.h"
#include "core/error.h"
#include "support/shape_cases.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::random_tensor;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

AttentionConfig config_of(const test::LayerShape& shape, QkvLayout layout = QkvLayout::kFused) {
  AttentionConfig config;
  config.d_model = shape.d_model;
  config.H = shape.H;
  config.max_seq_len = shape.max_seq_len;
  config.qkv = layout;
  return config;
}

AttentionConfig small_config() {
  AttentionConfig config;
  config.d_model = 12;
  config.H = 3;
  config.max_seq_len = 8;
  return config;
}

template <typename ExpectedError, typename Work>
std::string error_text(Work work) {
  try {
    work();
  } catch (const ExpectedError& error) {
    return error.what();
  }
  return "no such error";
}

Shapes parameter_shapes(const torch::nn::Module& module) {
  Shapes shapes;
  for (const auto& parameter : module.named_parameters()) shapes[parameter.key()] = parameter.value().sizes().vec();
  return shapes;
}

// --- shapes ---

class LayerShapes : public ::testing::TestWithParam<test::LayerShape> {};

TEST_P(LayerShapes, EveryStepHasTheShapeOfItsFormula) {
  const auto& [name, B, T, d_model, H, max_seq_len] = GetParam();
  const std::int64_t d_k = d_model / H;
  for (const QkvLayout layout : {QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate}) {
    MultiHeadAttention layer(config_of(GetParam(), layout));
    test::CapturingObserver observer;
    const AttentionOutput result =
        layer->forward(AttentionInput{random_tensor({B, T, d_model}, 1, at::kFloat)}, &observer);
    EXPECT_EQ(result.output.sizes(), at::IntArrayRef({B, T, d_model}));
    EXPECT_EQ(result.weights.value().sizes(), at::IntArrayRef({B, H, T, T}));
    if (layout == QkvLayout::kSeparate) {
      EXPECT_EQ(observer.at(Step::kKProj).sizes(), at::IntArrayRef({B, T, H * d_k}));
    } else {
      EXPECT_EQ(observer.at(Step::kQkv).sizes(), at::IntArrayRef({B, T, 3 * H * d_k}));
    }
    for (const Step step : {Step::kQ, Step::kK, Step::kV, Step::kContext}) {
      EXPECT_EQ(observer.at(step).sizes(), at::IntArrayRef({B, H, T, d_k})) << step_name(step);
    }
    for (const Step step : {Step::kScores, Step::kScaledScores, Step::kMaskedScores, Step::kDroppedWeights}) {
      EXPECT_EQ(observer.at(step).sizes(), at::IntArrayRef({B, H, T, T})) << step_name(step);
    }
    EXPECT_EQ(observer.at(Step::kMerged).sizes(), at::IntArrayRef({B, T, H * d_k}));
    EXPECT_EQ(observer.at(Step::kProjected).sizes(), at::IntArrayRef({B, T, d_model}));
  }
}

TEST_P(LayerShapes, FirstTokensContextIsItsOwnValue) {
  const auto& shape = GetParam();
  MultiHeadAttention layer(config_of(shape));
  test::CapturingObserver observer;
  layer->forward(AttentionInput{random_tensor({shape.B, shape.T, shape.d_model}, 1, at::kFloat)}, &observer);
  EXPECT_TRUE(identical(observer.at(Step::kContext).select(2, 0), observer.at(Step::kV).select(2, 0)));
}

TEST_P(LayerShapes, NoCutLetsTheFutureThrough) {
  const auto& shape = GetParam();
  MultiHeadAttention layer(config_of(shape));
  const at::Tensor x = random_tensor({shape.B, shape.T, shape.d_model}, 1, at::kFloat);
  const at::Tensor other = random_tensor({shape.B, shape.T, shape.d_model}, 2, at::kFloat);
  const at::Tensor before = layer->forward(x).output;
  for (std::int64_t cut = 1; cut < shape.T; ++cut) {
    const at::Tensor after = layer->forward(at::cat({x.slice(1, 0, cut), other.slice(1, cut)}, 1)).output;
    EXPECT_TRUE(identical(before.slice(1, 0, cut), after.slice(1, 0, cut))) << "cut " << cut;
    EXPECT_FALSE(identical(before.slice(1, cut), after.slice(1, cut))) << "cut " << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerShapes, ::testing::ValuesIn(test::kLayerShapes),
                         test::case_name<test::LayerShape>);

TEST(MultiHeadAttention, WithTheMaskOffTheFutureMovesEarlierOutputs) {
  MultiHeadAttention layer(small_config());
  const at::Tensor x = random_tensor({2, 6, 12}, 1, at::kFloat);
  const at::Tensor changed = at::cat({x.slice(1, 0, 4), random_tensor({2, 2, 12}, 2, at::kFloat)}, 1);
  layer->set_causal(false);
  EXPECT_FALSE(identical(layer->forward(x).output.slice(1, 0, 4), layer->forward(changed).output.slice(1, 0, 4)));
  layer->set_causal(true);
  EXPECT_TRUE(identical(layer->forward(x).output.slice(1, 0, 4), layer->forward(changed).output.slice(1, 0, 4)));
}

// --- the lessons' constructors ---

TEST(CausalMultiHeadAttention, HasLessonTwosParameters) {
  const CausalMultiHeadAttention layer(12, 3);
  EXPECT_EQ(
      parameter_shapes(*layer),
      (Shapes{{"c_attn.weight", {36, 12}}, {"c_attn.bias", {36}}, {"c_proj.weight", {12, 12}}, {"c_proj.bias", {12}}}));
  EXPECT_EQ(layer->config().max_seq_len, 1024);
  EXPECT_EQ(layer->config().dropout, 0.0);
  EXPECT_TRUE(layer->config().causal);
}

TEST(CausalSelfAttention, HasLessonOnesParametersAndDefaults) {
  const CausalSelfAttention layer(12, 3, 16);
  EXPECT_EQ(parameter_shapes(*layer), (Shapes{{"qkv_proj.weight", {36, 12}}, {"o_proj.weight", {12, 12}}}));
  EXPECT_EQ(layer->config().dropout, 0.1);
  const CausalSelfAttention with_bias(12, 3, 16, true, 0.0);
  EXPECT_EQ(parameter_shapes(*with_bias).count("o_proj.bias"), 1U);
}

TEST(CausalSelfAttention, GivesLessonOnesExampleShape) {
  CausalSelfAttention layer(512, 8, 1024);
  EXPECT_EQ(layer->forward(at::randn({4, 50, 512})).output.sizes(), at::IntArrayRef({4, 50, 512}));
}

TEST(MultiHeadAttention, ParametersFollowTheLayoutAndAGivenHeadWidth) {
  AttentionConfig config = small_config();
  config.qkv = QkvLayout::kSeparate;
  config.given_d_k = 5;
  const MultiHeadAttention layer(config);
  EXPECT_EQ(parameter_shapes(*layer), (Shapes{{"q_proj.weight", {15, 12}},
                                              {"k_proj.weight", {15, 12}},
                                              {"v_proj.weight", {15, 12}},
                                              {"o_proj.weight", {12, 15}}}));
}

TEST(MultiHeadAttention, OneSeedGivesOneSetOfWeights) {
  const auto weight = [](std::uint64_t seed) {
    at::manual_seed(seed);
    return CausalMultiHeadAttention(12, 3, 8)->named_parameters()["c_attn.weight"];
  };
  EXPECT_TRUE(identical(weight(5), weight(5)));
  EXPECT_FALSE(identical(weight(5), weight(6)));
}

// --- errors ---

TEST(MultiHeadAttention, RefusesAWidthThatHeadsDoNotDivide) {
  const std::string text = error_text<ConfigError>([] { CausalMultiHeadAttention(10, 3); });
  EXPECT_NE(text.find("d_model"), std::string::npos) << text;
  EXPECT_NE(text.find("10"), std::string::npos) << text;
  EXPECT_NE(text.find("3"), std::string::npos) << text;
  EXPECT_THROW(CausalSelfAttention(10, 3, 8), ConfigError);
}

TEST(MultiHeadAttention, RefusesASequenceLongerThanItsMask) {
  CausalMultiHeadAttention layer(12, 3, 8);
  EXPECT_NO_THROW(layer->forward(at::zeros({1, 8, 12})));
  EXPECT_EQ(error_text<ShapeError>([&] {
              layer->forward(at::zeros({1, 9, 12}));
            }),
            "x: T is 9, more than max_seq_len (8)");
}

TEST(MultiHeadAttention, RefusesAnInputOfAnotherShapeOrDtype) {
  CausalMultiHeadAttention layer(12, 3, 8);
  EXPECT_EQ(error_text<ShapeError>([&] {
              layer->forward(at::zeros({1, 4, 11}));
            }),
            "x: expected shape (-1, -1, 12) (-1 is any), got (1, 4, 11)");
  EXPECT_EQ(error_text<ShapeError>([&] {
              layer->forward(at::zeros({4, 12}));
            }),
            "x: expected shape (-1, -1, 12) (-1 is any), got (4, 12)");
  EXPECT_EQ(error_text<ShapeError>([&] {
              layer->forward(at::zeros({1, 4, 12}, at::kDouble));
            }),
            "x is Double on cpu, but the layer is Float on cpu");
}

// --- the mask buffer ---

at::Tensor mask_buffer(const torch::nn::Module& module, const std::string& name = "causal_mask") {
  return module.named_buffers()[name];
}

TEST(CausalMaskBuffer, IsABooleanBufferAndNoParameter) {
  const CausalMultiHeadAttention layer(12, 3, 8);
  EXPECT_TRUE(identical(mask_buffer(*layer), causal_mask(8, 8)));
  EXPECT_EQ(parameter_shapes(*layer).count("causal_mask"), 0U);
}

TEST(CausalMaskBuffer, StaysBooleanThroughEveryCast) {
  CausalMultiHeadAttention layer(12, 3, 8);
  for (const at::ScalarType dtype : test::kAllDtypes) {
    layer->to(dtype);
    EXPECT_TRUE(identical(mask_buffer(*layer), causal_mask(8, 8))) << dtype;
    layer->to(at::Device(at::kCPU), dtype);
    EXPECT_TRUE(identical(mask_buffer(*layer), causal_mask(8, 8))) << dtype;
    EXPECT_EQ(layer->forward(at::zeros({1, 4, 12}, dtype)).output.scalar_type(), dtype);
  }
}

TEST(CausalMaskBuffer, StaysBooleanInsideAParentModule) {
  struct Block : torch::nn::Module {
    Block() { register_module("attention", CausalMultiHeadAttention(12, 3, 8)); }
  };
  struct Model : torch::nn::Module {
    Model() { register_module("block", std::make_shared<Block>()); }
  };
  Model model;
  model.to(at::kDouble);
  EXPECT_TRUE(identical(mask_buffer(model, "block.attention.causal_mask"), causal_mask(8, 8)));
  EXPECT_EQ(model.named_parameters()["block.attention.c_attn.weight"].scalar_type(), at::kDouble);
}

TEST(CausalMaskBuffer, IsMissingWhereNothingIsHidden) {
  AttentionConfig config = small_config();
  config.causal = false;
  const MultiHeadAttention layer(config);
  EXPECT_TRUE(layer->named_buffers().is_empty());
  EXPECT_FALSE(layer->mask({4, 4}).has_value());
}

TEST(CausalMaskBuffer, IsCutToTheSequence) {
  EXPECT_TRUE(identical(CausalMultiHeadAttention(12, 3, 8)->mask({5, 5}).value(), causal_mask(5, 5)));
}

// --- scale, dtype, dropout, gradients, the seam ---

TEST(MultiHeadAttention, ScalesByTheRootOfTheHeadsWidth) {
  AttentionConfig config;  // d_k = 4, d_model = 8: the wrong roots give other weights
  config.d_model = 8;
  config.H = 2;
  MultiHeadAttention layer(config);
  const at::Tensor q = test::tensor_of({1, 2, 1, 4}, {4, 0, 0, 0, 4, 0, 0, 0});
  const at::Tensor k = test::tensor_of({1, 2, 2, 4}, {4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0});
  const at::Tensor weights = layer->attend(q, k, k, std::nullopt).weights.value();  // raw scores 16 and 0
  EXPECT_NEAR(weights[0][1][0][0].item<double>(), 0.999665, 5e-7);
}

TEST(MultiHeadAttention, LowPrecisionStaysNearFloat64) {
  // In this order, since a cast loses what the next one would have kept.
  const std::vector<std::pair<at::ScalarType, double>> rounding = {
      {at::kFloat, 6e-8}, {at::kHalf, 4.9e-4}, {at::kBFloat16, 3.9e-3}};
  at::manual_seed(1);
  CausalMultiHeadAttention layer(12, 3, 8);
  layer->to(at::kDouble);
  const at::Tensor x = random_tensor({2, 8, 12}, 1);
  const at::Tensor expected = layer->forward(x).output;
  for (const auto& [dtype, unit] : rounding) {
    layer->to(dtype);
    const at::Tensor output = layer->forward(x.to(dtype)).output;
    EXPECT_EQ(output.scalar_type(), dtype);
    // A handful of roundings one after the other: input, weights, q, scores, weights, context, output.
    EXPECT_LE(test::max_difference(output, expected), 16 * unit * test::largest(expected)) << dtype;
  }
}

TEST(MultiHeadAttention, DropoutActsInTrainingOnly) {
  CausalSelfAttention layer(12, 3, 8, false, 0.5);
  const at::Tensor x = random_tensor({2, 8, 12}, 1, at::kFloat);
  layer->eval();
  const at::Tensor in_eval = layer->forward(x).output;
  EXPECT_TRUE(identical(layer->forward(x).output, in_eval));
  layer->train();
  test::CapturingObserver observer;
  const AttentionOutput in_train = layer->forward(AttentionInput{x}, &observer);
  EXPECT_FALSE(identical(in_train.output, in_eval));
  // Both dropouts act, and the returned weights are those before dropout.
  EXPECT_FALSE(identical(observer.at(Step::kDroppedWeights), observer.at(Step::kWeights)));
  EXPECT_GT(in_train.output.eq(0.0).sum().item<std::int64_t>(), 0);
  EXPECT_LE(test::max_difference(in_train.weights->sum(-1), at::ones({2, 3, 8})), 1e-6);
  layer->eval();
  EXPECT_TRUE(identical(layer->forward(x).output, in_eval));
}

TEST(MultiHeadAttention, DropoutCanBeChanged) {
  CausalMultiHeadAttention layer(12, 3, 8);
  layer->train();
  const at::Tensor x = random_tensor({2, 8, 12}, 1, at::kFloat);
  const at::Tensor without = layer->forward(x).output;
  layer->set_dropout(0.5);
  EXPECT_FALSE(identical(layer->forward(x).output, without));
  EXPECT_THROW(layer->set_dropout(1.0), ConfigError);
  EXPECT_EQ(layer->config().dropout, 0.5);
  layer->set_dropout(0.0);
  EXPECT_TRUE(identical(layer->forward(x).output, without));
}

TEST(MultiHeadAttention, EveryParameterGetsAFiniteGradient) {
  for (const at::ScalarType dtype : test::kAllDtypes) {
    CausalMultiHeadAttention layer(12, 3, 8);
    layer->to(dtype);
    (layer->forward(random_tensor({2, 5, 12}, 1, dtype)).output * random_tensor({2, 5, 12}, 2, dtype)).sum().backward();
    for (const auto& parameter : layer->named_parameters()) {
      EXPECT_TRUE(test::all_finite(parameter.value().grad())) << parameter.key() << ' ' << dtype;
      EXPECT_GT(test::largest(parameter.value().grad()), 0.0) << parameter.key() << ' ' << dtype;
    }
  }
}

TEST(MultiHeadAttention, TakesAStridedInput) {
  CausalMultiHeadAttention layer(12, 3, 8);
  const at::Tensor x = random_tensor({12, 5, 2}, 1, at::kFloat).permute({2, 1, 0});  // (2, 5, 12), strides reversed
  ASSERT_FALSE(x.is_contiguous());
  EXPECT_LE(test::max_difference(layer->forward(x).output, layer->forward(x.contiguous()).output), 1e-6);
}

/// Another engine: forgets to scale.
class UnscaledCore : public AttentionCore {
 protected:
  at::Tensor scale_scores(const at::Tensor& scores, double) const override { return scores.clone(); }
};

TEST(MultiHeadAttention, UsesTheCoreItIsGiven) {
  at::manual_seed(1);
  MultiHeadAttention honest(small_config());
  at::manual_seed(1);
  MultiHeadAttention faulty(small_config(), std::make_shared<UnscaledCore>());
  const at::Tensor x = random_tensor({1, 4, 12}, 1, at::kFloat);
  EXPECT_FALSE(identical(honest->forward(x).output, faulty->forward(x).output));
}

}  // namespace
}  // namespace attn
