#include "attention/multi_head_attention.h"

#include <ATen/ops/dropout.h>

#include <string>
#include <utility>

#include "attention/distinct.h"
#include "attention/mask.h"
#include "attention/shapes.h"
#include "core/error.h"

namespace attn {
namespace {

/// The names that checkpoints use for the projections of each layout.
struct ProjectionNames {
  std::vector<std::string> qkv;
  std::string output;
};

ProjectionNames projection_names(QkvLayout layout) {
  switch (layout) {
    case QkvLayout::kFused:
      return {{"c_attn"}, "c_proj"};
    case QkvLayout::kFusedPerHead:
      return {{"qkv_proj"}, "o_proj"};
    case QkvLayout::kSeparate:
      return {{"q_proj", "k_proj", "v_proj"}, "o_proj"};
  }
  throw std::logic_error("a qkv layout without names");
}

AttentionConfig lesson_2_config(std::int64_t d_model, std::int64_t num_heads, std::int64_t max_seq_len) {
  AttentionConfig config;
  config.d_model = d_model;
  config.H = num_heads;
  config.max_seq_len = max_seq_len;
  config.qkv = QkvLayout::kFused;
  config.bias = true;
  return config;
}

AttentionConfig lesson_1_config(std::int64_t embed_dim, std::int64_t num_heads, std::int64_t max_seq_len, bool bias,
                                double dropout) {
  AttentionConfig config = lesson_2_config(embed_dim, num_heads, max_seq_len);
  config.qkv = QkvLayout::kFusedPerHead;
  config.bias = bias;
  config.dropout = dropout;
  return config;
}

}  // namespace

MultiHeadAttentionImpl::MultiHeadAttentionImpl(const AttentionConfig& config, std::shared_ptr<const AttentionCore> core)
    : config_(config), core_(core != nullptr ? std::move(core) : std::make_shared<const AttentionCore>()) {
  validate(config_);
  const ProjectionNames names = projection_names(config_.qkv);
  const std::int64_t width = 3 * config_.heads_width() / static_cast<std::int64_t>(names.qkv.size());
  const auto linear = [this](std::int64_t from, std::int64_t to) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(config_.bias));
  };
  for (const std::string& name : names.qkv) {
    qkv_layers_.push_back(register_module(name, linear(config_.d_model, width)));
  }
  output_layer_ = register_module(names.output, linear(config_.heads_width(), config_.d_model));
  set_causal(config_.causal);
}

AttentionOutput MultiHeadAttentionImpl::forward(const at::Tensor& x) { return forward(AttentionInput{x}); }

AttentionOutput MultiHeadAttentionImpl::forward(const AttentionInput& input, AttentionObserver* observer) {
  check_shape(input.x, "x", {kAnySize, kAnySize, config_.d_model});
  check_same_kind(input.x, "x", output_layer_->weight, "the layer");
  const std::int64_t length = input.x.size(1);
  if (length > config_.max_seq_len) {
    throw ShapeError("x: T is " + std::to_string(length) + ", more than max_seq_len (" +
                     std::to_string(config_.max_seq_len) + ")");
  }

  const at::Tensor x = announce(observer, Step::kX, input.x);  // (B, T, d_model)

  const Projections projections = project_qkv(x);
  if (projections.qkv.has_value()) {
    announce(observer, Step::kQkv, *projections.qkv);  // (B, T, 3*H*d_k)
  } else {
    announce(observer, Step::kQProj, projections.separate.value().q);  // (B, T, H*d_k)
    announce(observer, Step::kKProj, projections.separate->k);
    announce(observer, Step::kVProj, projections.separate->v);
  }

  const QueryKeyValue heads = split_qkv(projections);
  announce(observer, Step::kQ, heads.q);  // (B, H, T, d_k)
  announce(observer, Step::kK, heads.k);
  announce(observer, Step::kV, heads.v);

  const AttentionCoreOutput core_output = attend(heads.q, heads.k, heads.v, mask(length), observer);

  const at::Tensor merged = announce(observer, Step::kMerged, merge_context(core_output.context));  // (B, T, H*d_k)
  const at::Tensor projected = announce(observer, Step::kProjected, project_output(merged));        // (B, T, d_model)
  const at::Tensor output = is_training() && config_.dropout > 0.0
                                ? at::dropout(projected, config_.dropout, /*train=*/true)
                                : distinct(projected);
  return {announce(observer, Step::kOutput, output), core_output.weights};
}

AttentionCoreOutput MultiHeadAttentionImpl::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                   const std::optional<at::Tensor>& mask, AttentionObserver* observer) {
  AttentionCoreOptions options;
  options.scale = config_.scale();
  options.mask = mask;
  options.dropout = is_training() ? config_.dropout : 0.0;
  return core_->attend(q, k, v, options, observer);
}

std::optional<at::Tensor> MultiHeadAttentionImpl::mask(std::int64_t length) const {
  if (!config_.causal) return std::nullopt;
  return causal_mask_.slice(0, 0, length).slice(1, 0, length);
}

void MultiHeadAttentionImpl::set_causal(bool causal) {
  config_.causal = causal;
  if (causal && !causal_mask_.defined()) {
    const at::Device device = output_layer_->weight.device();
    causal_mask_ = register_buffer("causal_mask", causal_mask(config_.max_seq_len, config_.max_seq_len).to(device));
  }
}

void MultiHeadAttentionImpl::set_dropout(double dropout) {
  AttentionConfig changed = config_;
  changed.dropout = dropout;
  validate(changed);
  config_ = changed;
}

void MultiHeadAttentionImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  Module::to(device, dtype, non_blocking);
  restore_boolean_mask();
}

void MultiHeadAttentionImpl::to(torch::Dtype dtype, bool non_blocking) {
  Module::to(dtype, non_blocking);
  restore_boolean_mask();
}

void MultiHeadAttentionImpl::to(torch::Device device, bool non_blocking) { Module::to(device, non_blocking); }

void MultiHeadAttentionImpl::restore_boolean_mask() {
  if (causal_mask_.defined()) causal_mask_.set_data(causal_mask_.to(at::kBool));
}

Projections MultiHeadAttentionImpl::project_qkv(const at::Tensor& x) {
  if (qkv_layers_.size() == 1) return {qkv_layers_[0]->forward(x), std::nullopt};
  return {std::nullopt,
          QueryKeyValue{qkv_layers_[0]->forward(x), qkv_layers_[1]->forward(x), qkv_layers_[2]->forward(x)}};
}

QueryKeyValue MultiHeadAttentionImpl::split_qkv(const Projections& projections) {
  const std::int64_t H = config_.H;
  if (config_.qkv == QkvLayout::kFusedPerHead) {
    return split_thirds(split_heads(projections.qkv.value(), H));  // (B, H, T, 3*d_k), each head's own thirds
  }
  const QueryKeyValue wide =
      projections.qkv.has_value() ? split_thirds(*projections.qkv) : projections.separate.value();  // (B, T, H*d_k)
  return {split_heads(wide.q, H), split_heads(wide.k, H), split_heads(wide.v, H)};
}

at::Tensor MultiHeadAttentionImpl::merge_context(const at::Tensor& context) { return merge_heads(context); }

at::Tensor MultiHeadAttentionImpl::project_output(const at::Tensor& merged) { return output_layer_->forward(merged); }

CausalMultiHeadAttentionImpl::CausalMultiHeadAttentionImpl(std::int64_t d_model, std::int64_t num_heads,
                                                           std::int64_t max_seq_len)
    : MultiHeadAttentionImpl(lesson_2_config(d_model, num_heads, max_seq_len)) {}

CausalSelfAttentionImpl::CausalSelfAttentionImpl(std::int64_t embed_dim, std::int64_t num_heads,
                                                 std::int64_t max_seq_len, bool bias, double dropout)
    : MultiHeadAttentionImpl(lesson_1_config(embed_dim, num_heads, max_seq_len, bias, dropout)) {}

}  // namespace attn
