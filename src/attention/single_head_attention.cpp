#include "attention/single_head_attention.h"

#include <string>
#include <utility>

#include "attention/distinct.h"
#include "core/error.h"

namespace attn {
namespace {

AttentionConfig as_single_head(AttentionConfig config) {
  config.module = ModuleKind::kSingleHead;
  return config;
}

AttentionConfig lesson_2_config(std::int64_t d_model, std::int64_t d_k, std::int64_t max_seq_len) {
  AttentionConfig config;
  config.d_model = d_model;
  config.H = 1;
  config.given_d_k = d_k;
  config.max_seq_len = max_seq_len;
  config.qkv = QkvLayout::kSeparate;
  return config;
}

}  // namespace

SingleHeadAttentionImpl::SingleHeadAttentionImpl(const AttentionConfig& config,
                                                 std::shared_ptr<const AttentionCore> core)
    : MultiHeadAttentionImpl(as_single_head(config), std::move(core)) {}

QueryKeyValue SingleHeadAttentionImpl::split_qkv(const Projections& projections) {
  if (projections.qkv.has_value())
    return split_qkv_widths(*projections.qkv, config_.d_k());  // with one head all fused layouts agree
  const QueryKeyValue& separate = projections.separate.value();
  return {distinct(separate.q), distinct(separate.k), distinct(separate.v)};  // (B, T, d_k)
}

at::Tensor SingleHeadAttentionImpl::merge_context(const at::Tensor& context) { return distinct(context); }

SingleHeadCausalAttentionImpl::SingleHeadCausalAttentionImpl(std::int64_t d_model, std::int64_t d_k,
                                                             std::int64_t max_seq_len)
    : SingleHeadAttentionImpl(lesson_2_config(d_model, d_k, max_seq_len)) {}

}  // namespace attn
