#include "attention/multi_head_attention.h"

#include <ATen/ATen.h>

#include <string>
#include <utility>

#include "attention/alibi.h"
#include "attention/distinct.h"
#include "attention/rope.h"
#include "attention/sdpa_core.h"

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

std::shared_ptr<const AttentionCore> core_of(Engine engine) {
  if (engine == Engine::kSdpa) return std::make_shared<const SdpaCore>();
  return std::make_shared<const AttentionCore>();
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
    : config_(config), core_(core != nullptr ? std::move(core) : core_of(config.engine)) {
  validate(config_);
  const ProjectionNames names = projection_names(config_.qkv);
  const std::int64_t key_width = config_.H_kv() * config_.d_k();
  const std::vector<std::int64_t> widths = names.qkv.size() == 1
                                               ? std::vector{config_.heads_width() + 2 * key_width}
                                               : std::vector{config_.heads_width(), key_width, key_width};
  const auto linear = [](std::int64_t from, std::int64_t to, bool bias) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(bias));
  };
  for (std::size_t n = 0; n < widths.size(); ++n) {
    qkv_layers_.push_back(register_module(names.qkv[n], linear(config_.d_model, widths[n], config_.bias)));
  }
  output_layer_ = register_module(names.output, linear(config_.heads_width(), config_.d_model, config_.output_bias()));
  if (config_.qk_norm) {
    q_norm_ = register_module("q_norm", RmsNorm(config_.d_k(), config_.qk_norm_eps));
    k_norm_ = register_module("k_norm", RmsNorm(config_.d_k(), config_.qk_norm_eps));
  }
  if (config_.sink) sinks_ = register_parameter("sinks", at::randn({config_.H}));
  set_causal(config_.causal);
}

AttentionOutput MultiHeadAttentionImpl::forward(const at::Tensor& x) { return forward(AttentionInput{x}); }

AttentionOutput MultiHeadAttentionImpl::forward(const AttentionInput& input, AttentionObserver* observer) {
  check_input(input, config_, output_layer_->weight);
  const at::Tensor x = announce(observer, Step::kX, input.x);  // (B, T, d_model)
  const at::Tensor memory =
      input.memory.defined() ? announce(observer, Step::kMemory, input.memory) : x;  // (B, T_k, d_model)

  const Projections projections = project_qkv(x, memory);
  announce_projections(projections, observer);

  QueryKeyValue heads = split_qkv(projections);
  announce(observer, Step::kQ, heads.q);  // (B, H, T, d_k)
  announce(observer, Step::kK, heads.k);  // (B, H_kv, T_k, d_k)
  announce(observer, Step::kV, heads.v);
  if (config_.qk_norm) {
    heads = normalize_heads(heads);
    announce(observer, Step::kQNormed, heads.q);
    announce(observer, Step::kKNormed, heads.k);
  }
  MaskPlace place{x.size(1), memory.size(1)};
  if (input.cache != nullptr) place.first_query = input.cache->tokens_seen();
  if (config_.rope.has_value()) {
    heads = rotate_heads(heads, place.first_query);
    announce(observer, Step::kQRotated, heads.q);
    announce(observer, Step::kKRotated, heads.k);
  }
  at::Tensor real_keys = input.real_keys;
  if (input.cache != nullptr) {
    heads = remember(*input.cache, heads, input.real_keys);
    announce(observer, Step::kKCached, heads.k);
    announce(observer, Step::kVCached, heads.v);
    real_keys = input.cache->real_keys();
    place.key_len = heads.k.size(-2);
    place.first_key = place.first_query + place.query_len - place.key_len;
  }

  const AttentionCoreOutput core_output = attend(heads.q, heads.k, heads.v, mask(place, real_keys), observer);
  // The next query sees itself and window - 1 keys before it.
  if (input.cache != nullptr && config_.window.has_value()) input.cache->keep_last(*config_.window - 1);

  const at::Tensor merged = announce(observer, Step::kMerged, merge_context(core_output.context));  // (B, T, H*d_k)
  const at::Tensor projected = announce(observer, Step::kProjected, project_output(merged));        // (B, T, d_model)
  const at::Tensor output = is_training() && config_.dropout > 0.0
                                ? at::dropout(projected, config_.dropout, /*train=*/true)
                                : distinct(projected);
  return {announce(observer, Step::kOutput, output), core_output.weights};
}

void MultiHeadAttentionImpl::announce_projections(const Projections& projections, AttentionObserver* observer) const {
  if (projections.qkv.has_value()) {
    announce(observer, Step::kQkv, *projections.qkv);  // (B, T, (H + 2*H_kv)*d_k)
    return;
  }
  announce(observer, Step::kQProj, projections.separate.value().q);  // (B, T, H*d_k)
  announce(observer, Step::kKProj, projections.separate->k);         // (B, T_k, H_kv*d_k)
  announce(observer, Step::kVProj, projections.separate->v);
}

AttentionCoreOutput MultiHeadAttentionImpl::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                   const std::optional<at::Tensor>& mask, AttentionObserver* observer) {
  return core_->attend(q, k, v, core_options(q.size(-2), k.size(-2), mask), observer);
}

AttentionCoreOptions MultiHeadAttentionImpl::core_options(std::int64_t query_len, std::int64_t key_len,
                                                          const std::optional<at::Tensor>& mask) const {
  AttentionCoreOptions options;
  options.scale = config_.scale();
  options.mask = mask;
  options.dropout = is_training() ? config_.dropout : 0.0;
  options.softcap = config_.softcap;
  if (config_.alibi) options.bias = alibi_bias(config_.H, query_len, key_len, output_layer_->weight.options());
  if (config_.sink) options.sink = sinks_;
  return options;
}

std::optional<at::Tensor> MultiHeadAttentionImpl::mask(const MaskPlace& place, const at::Tensor& real_keys) const {
  const at::Device device = output_layer_->weight.device();
  std::optional<at::Tensor> visible;
  if (config_.causal) {
    visible = causal_mask_.narrow(0, place.first_query, place.query_len).narrow(1, place.first_key, place.key_len);
  }
  if (config_.window.has_value()) {
    visible = both_masks(visible, window_mask(place, *config_.window, /*both_sides=*/!config_.causal, device));
  }
  if (config_.mask.has_value()) visible = both_masks(visible, own_mask(*config_.mask, place, device));
  if (!real_keys.defined()) return visible;
  at::Tensor real = real_keys.unsqueeze(1);                                // (B, 1, T_k): for every query
  if (config_.module == ModuleKind::kMultiHead) real = real.unsqueeze(1);  // (B, 1, 1, T_k): of every head
  const std::vector<std::int64_t> shape = config_.module == ModuleKind::kMultiHead
                                              ? std::vector<std::int64_t>{-1, 1, place.query_len, place.key_len}
                                              : std::vector<std::int64_t>{-1, place.query_len, place.key_len};
  return both_masks(visible, real.expand(shape));
}

std::unique_ptr<KeyValueCache> MultiHeadAttentionImpl::make_cache() const { return std::make_unique<KeyValueCache>(); }

void MultiHeadAttentionImpl::set_causal(bool causal) {
  config_.causal = causal;
  if (causal && !causal_mask_.defined()) {
    const at::Device device = output_layer_->weight.device();
    causal_mask_ = register_buffer("causal_mask", causal_mask(config_.max_seq_len, config_.max_seq_len).to(device));
  }
}

void MultiHeadAttentionImpl::remove_masks() { config_ = config_.without_masks(); }

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

Projections MultiHeadAttentionImpl::project_qkv(const at::Tensor& x, const at::Tensor& memory) {
  if (qkv_layers_.size() == 1) return {qkv_layers_[0]->forward(x), std::nullopt};
  return {std::nullopt,
          QueryKeyValue{qkv_layers_[0]->forward(x), qkv_layers_[1]->forward(memory), qkv_layers_[2]->forward(memory)}};
}

QueryKeyValue MultiHeadAttentionImpl::split_qkv(const Projections& projections) {
  const std::int64_t d_k = config_.d_k();
  if (config_.qkv == QkvLayout::kFusedPerHead) {
    // Key head by key head: the query heads that it serves, its key, its value.
    const at::Tensor groups = split_heads(projections.qkv.value(), config_.H_kv());
    const QueryKeyValue of_group =
        split_qkv_widths(groups, config_.heads_a_group() * d_k);  // q (B, H_kv, T, H/H_kv*d_k)
    if (config_.heads_a_group() == 1) return of_group;
    const at::Tensor q = of_group.q.unflatten(-1, {config_.heads_a_group(), d_k}).transpose(2, 3).flatten(1, 2);
    return {q, of_group.k, of_group.v};
  }
  const QueryKeyValue wide = projections.qkv.has_value()
                                 ? split_qkv_widths(*projections.qkv, config_.heads_width())
                                 : projections.separate.value();  // (B, T, H*d_k), (B, T_k, H_kv*d_k) twice
  return {split_heads(wide.q, config_.H), split_heads(wide.k, config_.H_kv()), split_heads(wide.v, config_.H_kv())};
}

QueryKeyValue MultiHeadAttentionImpl::normalize_heads(const QueryKeyValue& heads) {
  return {q_norm_->forward(heads.q), k_norm_->forward(heads.k), heads.v};
}

QueryKeyValue MultiHeadAttentionImpl::rotate_heads(const QueryKeyValue& heads, std::int64_t first_position) {
  const RopeConfig& rope = config_.rope.value();
  const RopeTables tables = rope_tables(rope, config_.d_k(), first_position, heads.q.size(-2), heads.q.options());
  const RotatedQueryKey turned = apply_rope(heads.q, heads.k, tables.cos, tables.sin, rope.style);
  return {turned.q, turned.k, heads.v};
}

QueryKeyValue MultiHeadAttentionImpl::remember(KeyValueCache& cache, const QueryKeyValue& heads,
                                               const at::Tensor& real_keys) {
  cache.append(heads.k, heads.v, real_keys);
  return {heads.q, distinct(cache.k()), distinct(cache.v())};
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
