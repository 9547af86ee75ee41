// Faults that mix what should stay apart: tokens, items, lengths.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"

namespace attn {
namespace {

constexpr std::int64_t kBlock = 4;

struct KeysOfNeighbourItem : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return AttentionCore::compute_scores(q, k.roll({1}, {0}));
  }
};

struct ValuesOfNeighbourItem : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    return AttentionCore::mix_values(weights, v.roll({1}, {0}));
  }
};

/// Each value becomes the mean of its block of four; the last block may be shorter.
at::Tensor block_means(const at::Tensor& tokens) {
  std::vector<at::Tensor> blocks;
  for (const at::Tensor& block : tokens.split(kBlock, -2)) {
    blocks.push_back(block.mean(-2, /*keepdim=*/true).expand_as(block));
  }
  return at::cat(blocks, -2);
}

struct ValuesAveraged : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    return AttentionCore::mix_values(weights, block_means(v));
  }
};

/// Changing tokens from a block's border on shows nothing.
template <typename Layer>
struct OutputsAveraged : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override { return block_means(Layer::project_output(merged)); }
};

template <typename Layer>
struct ResidualAdded : Layer {
  using Layer::Layer;
  Projections project_qkv(const at::Tensor& x, const at::Tensor& memory) override {
    x_ = x;
    return Layer::project_qkv(x, memory);
  }
  at::Tensor project_output(const at::Tensor& merged) override { return Layer::project_output(merged) + x_; }
  at::Tensor x_;
};

/// Key j counts 1 + j times, whatever key it is.
struct ValuesWeightedByPlace : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor place = at::arange(v.size(-2), at::TensorOptions().dtype(at::kDouble).device(v.device()));
    return AttentionCore::mix_values(weights, v * (1.0 + place).to(v.scalar_type()).unsqueeze(-1));
  }
};

/// Outputs grow with the number of tokens, later ones included.
template <typename Layer>
struct ScaledByLength : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override {
    return Layer::project_output(merged) * std::sqrt(static_cast<double>(merged.size(1)));
  }
};

std::string needs_unlike_tokens(const RunConfig& run) {
  return some_unlike_rows(run, kBlock) ? "" : "the queries of each block of four see the same key alone";
}

std::string needs_block_of_keys(const RunConfig& run) {
  const std::int64_t keys = run.memory_length.value_or(run.T);
  const auto has_neighbours = [&](std::int64_t, std::int64_t key) { return key % kBlock != 0 || key + 1 < keys; };
  return some_visible_pair(run, has_neighbours) ? "" : "every key that is seen is a block of its own";
}

std::string needs_later_key(const RunConfig& run) {
  const bool some = some_visible_pair(run, [](std::int64_t, std::int64_t key) { return key > 0; });
  return some ? "" : "no query sees another key than the first";
}

/// Of a causal layer: a part of the tokens gives outputs that are not all 0, whatever they are multiplied by.
std::string needs_early_output(const RunConfig& run) {
  if (!run.attention.causal) return needs_visible_key(run);
  const bool some = some_row(run, [&](const DeclaredRow& row) { return row.query + 1 < run.T && !row.keys.empty(); });
  return some ? "" : "no query before the last one may look at any key";
}

}  // namespace

std::vector<FaultEntry> mixing_faults() {
  return {
      {{"keys-of-neighbour-item", "scores are made with the keys of the batch item before", {"batch-independence"}},
       {needs_competing_keys},
       core_fault<KeysOfNeighbourItem>()},
      {{"values-of-neighbour-item", "weights mix the values of the batch item before", {"batch-independence"}},
       {needs_visible_key},
       core_fault<ValuesOfNeighbourItem>()},
      {{"values-averaged-over-4", "values are averaged over blocks of four tokens", {"sdpa-forward"}},
       {needs_block_of_keys},
       core_fault<ValuesAveraged>()},
      {{"values-weighted-by-place", "a later value counts more", {"permutation", "sdpa-forward"}},
       {needs_later_key},
       core_fault<ValuesWeightedByPlace>()},
      {{"outputs-averaged-over-4", "outputs are averaged over blocks of four tokens", {"reference-forward"}},
       {needs_two_tokens, needs_unlike_tokens},
       layer_fault<OutputsAveraged>()},
      {{"outputs-scaled-by-length", "outputs are multiplied by sqrt(T)", {"truncation", "reference-forward"}},
       {needs_two_tokens, needs_early_output},
       layer_fault<ScaledByLength>()},
      {{"residual-added", "the input is added to the output", {"reference-forward"}}, {}, layer_fault<ResidualAdded>()},
  };
}

}  // namespace attn
