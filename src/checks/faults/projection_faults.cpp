// Faults of the projections: which numbers become queries, keys, values and outputs.
#include <ATen/ATen.h>

#include "attention/distinct.h"
#include "attention/heads.h"
#include "checks/faults/fault.h"

namespace attn {
namespace {

template <typename Layer>
struct QueriesForKeys : Layer {
  using Layer::Layer;
  QueryKeyValue split_qkv(const Projections& projections) override {
    const QueryKeyValue right = Layer::split_qkv(projections);
    return {right.k, right.q, right.v};
  }
};

template <typename Layer>
struct KeysForValues : Layer {
  using Layer::Layer;
  QueryKeyValue split_qkv(const Projections& projections) override {
    const QueryKeyValue right = Layer::split_qkv(projections);
    return {right.q, right.v, right.k};
  }
};

/// Reads the fused projection as if the other fused layout had made it.
struct OtherFusedLayout : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue split_qkv(const Projections& projections) override {
    const QkvLayout right = config_.qkv;
    config_.qkv = right == QkvLayout::kFused ? QkvLayout::kFusedPerHead : QkvLayout::kFused;
    QueryKeyValue heads = MultiHeadAttentionImpl::split_qkv(projections);
    config_.qkv = right;
    return heads;
  }
};

template <typename Layer>
struct WithoutBias : Layer {
  using Layer::Layer;
  Projections project_qkv(const at::Tensor& x, const at::Tensor& memory) override {
    const auto linear = [&](std::size_t index, const at::Tensor& from) {
      return at::linear(from, this->qkv_layers_[index]->weight);
    };
    if (this->qkv_layers_.size() == 1) return {linear(0, x), std::nullopt};
    return {std::nullopt, QueryKeyValue{linear(0, x), linear(1, memory), linear(2, memory)}};
  }
  at::Tensor project_output(const at::Tensor& merged) override {
    return at::linear(merged, this->output_layer_->weight);
  }
};

template <typename Layer>
struct WithoutOutputProjection : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override { return distinct(merged); }
};

template <typename Layer>
struct OutputWeightTransposed : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override {
    return at::linear(merged, this->output_layer_->weight.t(), this->output_layer_->bias);
  }
};

std::string needs_fused(const RunConfig& run) {
  return run.attention.qkv == QkvLayout::kFused ? "" : "qkv is " + to_string(run.attention.qkv);
}

std::string needs_fused_per_head(const RunConfig& run) {
  return run.attention.qkv == QkvLayout::kFusedPerHead ? "" : "qkv is " + to_string(run.attention.qkv);
}

std::string needs_bias(const RunConfig& run) {
  return run.attention.bias || run.attention.output_bias() ? "" : "the layer has no bias";
}

/// With one number a token, q.k is x_i x_j times a factor of the head.
std::string needs_unlike_q_and_k(const RunConfig& run) {
  const AttentionConfig& config = run.attention;
  if (run.memory_length.has_value()) return "queries and keys are those of two sequences";
  if (config.H_kv() != config.H) return "H_kv is not H: the shapes would not fit";
  const bool alike = config.d_model == 1 && !config.bias && !config.rope.has_value();
  return alike ? "d_model is 1 without a bias: q.k is the same when they are swapped" : "";
}

std::string needs_square_output(const RunConfig& run) {
  const AttentionConfig& config = run.attention;
  if (config.heads_width() == config.d_model) return "";
  return "H*d_k (" + std::to_string(config.heads_width()) + ") is not d_model (" + std::to_string(config.d_model) +
         "): the shapes would not fit";
}

std::string needs_wide_output(const RunConfig& run) {
  return run.attention.d_model == 1 ? "d_model is 1: a weight of one number is its own transpose" : "";
}

}  // namespace

std::vector<FaultEntry> projection_faults() {
  const std::vector<std::string> seen{"reference-forward"};
  return {
      {{"qk-swapped", "queries and keys are swapped", {"reference-forward", "reference-weights"}},
       {needs_two_places, needs_unlike_q_and_k},
       layer_fault<QueriesForKeys>()},
      {{"kv-swapped", "keys and values are swapped", seen}, {needs_visible_key}, layer_fault<KeysForValues>()},
      {{"fused-thirds-per-head", "the fused projection is read head by head, though it is made in thirds", seen},
       {needs_fused, needs_two_heads, needs_two_key_heads, needs_visible_key},
       multi_head_fault<OtherFusedLayout>()},
      {{"per-head-as-thirds", "the fused projection is read in thirds, though it is made head by head", seen},
       {needs_fused_per_head, needs_two_heads, needs_two_key_heads, needs_visible_key},
       multi_head_fault<OtherFusedLayout>()},
      {{"bias-forgotten", "no projection adds its bias", {"finite"}}, {needs_bias}, layer_fault<WithoutBias>()},
      {{"output-projection-forgotten", "merged heads are the output", {"finite", "reference-forward"}},
       {needs_square_output, needs_visible_key},
       layer_fault<WithoutOutputProjection>()},
      {{"output-weight-transposed",
        "the output projection's weight is transposed",
        {"reference-forward", "reference-backward"}},
       {needs_square_output, needs_wide_output, needs_visible_key},
       layer_fault<OutputWeightTransposed>()},
  };
}

}  // namespace attn
