#include "checks/faults/faulty_cores.h"

#include <ATen/ATen.h>

namespace attn {

at::Tensor OtherScale::scale_scores(const at::Tensor& scores, double) const { return scores * factor; }

at::Tensor only_pair(const at::Tensor& like, const LeakedPair& pair) {
  at::Tensor marked = at::zeros_like(like, at::kBool);
  const bool has_head_axis = like.dim() == 4;
  const bool inside = like.dim() >= 3 && pair.batch < like.size(0) && (!has_head_axis || pair.head < like.size(1)) &&
                      pair.query < like.size(-2) && pair.key < like.size(-1);
  if (!inside) return marked;
  const at::Tensor item = marked.select(0, pair.batch);
  const at::Tensor head = has_head_axis ? item.select(0, pair.head) : item;
  head[pair.query][pair.key] = true;
  return marked;
}

at::Tensor for_every_query_head(const at::Tensor& keys, const at::Tensor& like) {
  if (like.dim() != 4 || keys.size(1) == like.size(1)) return keys;
  return keys.repeat_interleave(like.size(1) / keys.size(1), 1);
}

at::Tensor OpenPair::mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const {
  return AttentionCore::mask_scores(scores, opened(mask, scores));
}

at::Tensor OpenPair::normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                                      const std::optional<at::Tensor>& sink) const {
  return AttentionCore::normalize_scores(masked, opened(mask, masked), sink);
}

std::optional<at::Tensor> OpenPair::opened(const std::optional<at::Tensor>& mask, const at::Tensor& scores) const {
  if (!mask.has_value()) return std::nullopt;
  return mask->logical_or(only_pair(scores, pair));
}

at::Tensor MixedInPair::mix_values(const at::Tensor& weights, const at::Tensor& v) const {
  const at::Tensor share_of_pair = only_pair(weights, pair).to(weights.scalar_type()) * share;
  return AttentionCore::mix_values(weights, v) + AttentionCore::mix_values(share_of_pair, v);
}

at::Tensor WeightedPair::normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                                          const std::optional<at::Tensor>& sink) const {
  const at::Tensor weights = AttentionCore::normalize_scores(masked, mask, sink);
  const at::Tensor leaked = only_pair(weights, pair).to(weights.scalar_type()) * share;
  const at::Tensor own = only_pair(weights, {pair.batch, pair.head, pair.query, pair.query});
  return weights + leaked - own.to(weights.scalar_type()) * share;
}

}  // namespace attn
