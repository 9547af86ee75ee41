// Faults of grouped heads: which key head serves which query head.
#include <ATen/ATen.h>

#include "checks/faults/fault.h"

namespace attn {
namespace {

/// Key heads (B, H_kv, T_k, d_k) so arranged that query head h finds the one it is served by in this fault.
using Serving = at::Tensor (*)(const at::Tensor& keys, const at::Tensor& like);

at::Tensor as_declared(const at::Tensor& keys, const at::Tensor&) { return keys; }

/// Query head h uses key head h mod H_kv.
at::Tensor tiled(const at::Tensor& keys, const at::Tensor& like) {
  const bool grouped = like.dim() == 4 && keys.size(1) > 1 && keys.size(1) < like.size(1);
  return grouped ? keys.repeat({1, like.size(1) / keys.size(1), 1, 1}) : keys;
}

at::Tensor of_neighbour(const at::Tensor& keys, const at::Tensor& like) {
  return like.dim() == 4 && keys.size(1) > 1 ? keys.roll({1}, {1}) : keys;
}

struct ServedOtherwise : AttentionCore {
  ServedOtherwise(Serving for_keys, Serving for_values) : keys_of(for_keys), values_of(for_values) {}
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q, keys_of(k, q));
  }
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    return AttentionCore::mix_values(weights, values_of(v, weights));
  }
  Serving keys_of, values_of;
};

std::string needs_groups(const RunConfig& run) {
  if (run.attention.H_kv() == run.attention.H) return "H_kv is H: every head has keys of its own";
  return needs_two_key_heads(run);
}

}  // namespace

std::vector<FaultEntry> group_faults() {
  const std::vector<std::string> seen{"gqa-map", "sdpa-forward", "reference-forward"};
  return {
      {{"groups-tiled", "query head h uses key head h mod H_kv", seen},
       {needs_groups, needs_visible_key},
       core_fault<ServedOtherwise>(tiled, tiled)},
      {{"groups-keys-tiled", "query head h uses the keys, not the values, of head h mod H_kv", seen},
       {needs_groups, needs_competing_keys},
       core_fault<ServedOtherwise>(tiled, as_declared)},
      {{"groups-values-tiled", "query head h uses the values, not the keys, of head h mod H_kv", seen},
       {needs_groups, needs_visible_key},
       core_fault<ServedOtherwise>(as_declared, tiled)},
      {{"groups-of-neighbour", "every group uses the key head of the group before", seen},
       {needs_two_key_heads, needs_visible_key},
       core_fault<ServedOtherwise>(of_neighbour, of_neighbour)},
  };
}

}  // namespace attn
