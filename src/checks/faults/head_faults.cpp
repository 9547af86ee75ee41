// Faults of splitting into heads and of putting them together again.
#include <ATen/ATen.h>

#include "attention/heads.h"
#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "checks/faults/faulty_cores.h"

namespace attn {
namespace {

/// (B, T, H*width) to (B, H, T, width) without swapping axes: tokens end up in other heads.
at::Tensor bare_reshape(const at::Tensor& tokens, std::int64_t heads) {
  return tokens.reshape({tokens.size(0), heads, tokens.size(1), tokens.size(2) / heads});
}

struct SplitByBareReshape : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue split_qkv(const Projections& projections) override {
    const std::int64_t H_kv = config_.H_kv();
    if (config_.qkv == QkvLayout::kFusedPerHead) {
      const std::int64_t of_a_group = config_.heads_a_group();
      const QueryKeyValue groups = split_qkv_widths(bare_reshape(projections.qkv.value(), H_kv), of_a_group * d_k());
      const at::Tensor q = groups.q.reshape({groups.q.size(0), config_.H, groups.q.size(2), d_k()});
      return {q, groups.k, groups.v};
    }
    const QueryKeyValue wide = projections.qkv.has_value() ? split_qkv_widths(*projections.qkv, config_.heads_width())
                                                           : projections.separate.value();
    return {bare_reshape(wide.q, config_.H), bare_reshape(wide.k, H_kv), bare_reshape(wide.v, H_kv)};
  }
  std::int64_t d_k() const { return config_.d_k(); }
};

/// The heads begin one channel too late.
struct CutOffByOne : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue split_qkv(const Projections& projections) override {
    const QueryKeyValue right = MultiHeadAttentionImpl::split_qkv(projections);
    const auto shifted = [&](const at::Tensor& heads) {
      return split_heads(merge_heads(heads).roll({-1}, {-1}), heads.size(1));
    };
    return {shifted(right.q), shifted(right.k), shifted(right.v)};
  }
};

struct MergedWithoutTranspose : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor merge_context(const at::Tensor& context) override {
    return context.reshape({context.size(0), context.size(2), context.size(1) * context.size(3)});
  }
};

struct MergedInReverse : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor merge_context(const at::Tensor& context) override {
    return MultiHeadAttentionImpl::merge_context(context.flip({1}));
  }
};

struct Averaged : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor merge_context(const at::Tensor& context) override {
    return MultiHeadAttentionImpl::merge_context(context.mean(1, /*keepdim=*/true).expand_as(context));
  }
};

/// The last head, which may be the only one.
template <typename Layer>
struct LastDropped : Layer {
  using Layer::Layer;
  at::Tensor merge_context(const at::Tensor& context) override {
    const at::Tensor merged = Layer::merge_context(context).clone();
    const std::int64_t d_k = this->config_.d_k();
    merged.narrow(-1, merged.size(-1) - d_k, d_k).zero_();
    return merged;
  }
};

template <typename Layer>
struct AxisLeft : Layer {
  using Layer::Layer;
  at::Tensor merge_context(const at::Tensor& context) override { return Layer::merge_context(context).unsqueeze(2); }
  at::Tensor project_output(const at::Tensor& merged) override { return Layer::project_output(merged.squeeze(2)); }
};

struct ValuesOfOtherHead : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    if (v.dim() != 4 || v.size(1) == 1) return AttentionCore::mix_values(weights, v);
    return AttentionCore::mix_values(weights, for_every_query_head(v, weights).roll({1}, {1}));
  }
};

/// Keys and values of one channel stay what they are, so the queries must show it.
std::string needs_two_channels(const RunConfig& run) {
  if (run.attention.heads_width() == 1) return "H*d_k is 1";
  if (run.attention.H_kv() * run.attention.d_k() > 1) return needs_visible_key(run);
  return needs_competing_keys(run).empty() ? "" : "H_kv*d_k is 1, and no score says anything";
}

/// With one key head keys and values stay what they are, so the queries must show it.
std::string needs_tokens_to_confuse(const RunConfig& run) {
  const bool queries = run.T > 1 && needs_competing_keys(run).empty();
  const bool keys = run.memory_length.value_or(run.T) > 1 && run.attention.H_kv() > 1 && needs_visible_key(run).empty();
  if (queries || keys) return "";
  const std::string one = needs_two_tokens(run);
  return one.empty() ? "H_kv is 1, and no score says anything" : one;
}

std::string needs_unlike_contexts(const RunConfig& run) {
  const bool unlike = some_unlike_rows(run, run.T) || needs_unlike_heads(run).empty();
  return unlike ? "" : "every query sees the same key alone, and all heads are alike";
}

}  // namespace

std::vector<FaultEntry> head_faults() {
  return {
      {{"heads-bare-reshape", "heads are split by a reshape alone, axes are not swapped", {"reference-forward"}},
       {needs_two_heads, needs_tokens_to_confuse},
       multi_head_fault<SplitByBareReshape>()},
      {{"heads-cut-off-by-one", "every head begins one channel too late", {"reference-forward"}},
       {needs_head_axis, needs_two_channels},
       multi_head_fault<CutOffByOne>()},
      {{"heads-merged-without-transpose",
        "heads are merged by a reshape alone, axes are not swapped",
        {"reference-forward"}},
       {needs_two_heads, needs_two_tokens, needs_unlike_contexts},
       multi_head_fault<MergedWithoutTranspose>()},
      {{"heads-reversed", "heads are merged in reverse order", {"reference-forward"}},
       {needs_unlike_heads},
       multi_head_fault<MergedInReverse>()},
      {{"heads-averaged", "every head is replaced by the mean of all", {"reference-forward"}},
       {needs_unlike_heads},
       multi_head_fault<Averaged>()},
      {{"head-dropped", "the last head is left out", {"reference-forward"}},
       {needs_visible_key},
       layer_fault<LastDropped>()},
      {{"head-values-of-another",
        "every head mixes the values of the head before",
        {"head-independence", "sdpa-forward"}},
       {needs_two_heads, needs_two_key_heads, needs_visible_key},
       core_fault<ValuesOfOtherHead>()},
      {{"head-axis-left", "the merged heads keep an axis of size 1", {"shapes"}}, {}, layer_fault<AxisLeft>()},
  };
}

}  // namespace attn
