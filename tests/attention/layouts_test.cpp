// The three layouts of the projections are one layer: with the same weights in another order they give the same result.
#include <gtest/gtest.h>

#include "attention/multi_head_attention.h"
#include "support/shape_cases.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

class Layouts : public ::testing::TestWithParam<test::LayerShape> {
 protected:
  MultiHeadAttention make(QkvLayout layout) const {
    AttentionConfig config;
    config.d_model = GetParam().d_model;
    config.H = GetParam().H;
    config.max_seq_len = GetParam().max_seq_len;
    config.bias = true;
    config.qkv = layout;
    MultiHeadAttention layer(config);
    layer->to(at::kDouble);
    return layer;
  }

  static at::Tensor parameter(const MultiHeadAttention& layer, const std::string& name) {
    return layer->named_parameters()[name];
  }

  void expect_same(MultiHeadAttention& layer, MultiHeadAttention& other) const {
    const auto& shape = GetParam();
    const at::Tensor x = test::random_tensor({shape.B, shape.T, shape.d_model}, 1);
    const AttentionOutput expected = layer->forward(x);
    const AttentionOutput actual = other->forward(x);
    EXPECT_LE(test::max_difference(actual.output, expected.output), test::limit_for(expected.output, 1e-13));
    EXPECT_LE(test::max_difference(*actual.weights, *expected.weights), 1e-13);
  }
};

TEST_P(Layouts, ThirdsAreTheThreeProjectionsOneBelowTheOther) {
  const at::NoGradGuard no_grad;
  MultiHeadAttention separate = make(QkvLayout::kSeparate);
  MultiHeadAttention fused = make(QkvLayout::kFused);
  for (const std::string kind : {".weight", ".bias"}) {
    parameter(fused, "c_attn" + kind)
        .copy_(at::cat({parameter(separate, "q_proj" + kind), parameter(separate, "k_proj" + kind),
                        parameter(separate, "v_proj" + kind)}));
    parameter(fused, "c_proj" + kind).copy_(parameter(separate, "o_proj" + kind));
  }
  expect_same(separate, fused);
}

TEST_P(Layouts, PerHeadTakesTheRowsOfEachHeadInTurn) {
  const at::NoGradGuard no_grad;
  MultiHeadAttention separate = make(QkvLayout::kSeparate);
  MultiHeadAttention per_head = make(QkvLayout::kFusedPerHead);
  const std::int64_t d_k = separate->config().d_k();
  for (const std::string kind : {".weight", ".bias"}) {
    std::vector<at::Tensor> rows;
    for (std::int64_t head = 0; head < GetParam().H; ++head) {
      for (const std::string name : {"q_proj", "k_proj", "v_proj"}) {
        rows.push_back(parameter(separate, name + kind).slice(0, head * d_k, (head + 1) * d_k));
      }
    }
    parameter(per_head, "qkv_proj" + kind).copy_(at::cat(rows));
    parameter(per_head, "o_proj" + kind).copy_(parameter(separate, "o_proj" + kind));
  }
  expect_same(separate, per_head);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Layouts, ::testing::ValuesIn(test::kLayerShapes), test::case_name<test::LayerShape>);

}  // namespace
}  // namespace attn
