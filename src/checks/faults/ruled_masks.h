// Layers that apply another mask than the config declares. The mask is a rule for one pair of query and key, from which
// both the layer's tensor and the condition "it differs from the declared one somewhere" are made, so that they cannot
// disagree. As faults of the layer they work with every engine. Private to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "checks/faults/fault.h"

namespace attn {

/// One pair, as a rule sees it. Positions are counted from the start of the sequence.
struct MaskedPair {
  const AttentionConfig& config;  ///< as the layer has it: a layer whose masks were taken off declares none.
  MaskPlace place;
  std::int64_t query = 0, key = 0;  ///< positions
  bool key_is_token = true;
  bool query_is_token = true;  ///< of the key at the query's own position; true where there is none.
};

/// true: the query looks at the key.
using MaskRule = std::function<bool(const MaskedPair&)>;

/// The parts of the declared mask, one by one.
bool causal_allows(const MaskedPair& pair);
bool window_allows(const MaskedPair& pair);
bool own_mask_allows(const MaskedPair& pair);

/// All of them but the window, padding too.
bool allowed_without_window(const MaskedPair& pair);

/// The rule's mask for these queries and keys, in the shape that MultiHeadAttentionImpl::mask() gives; `honest` itself
/// where they are equal.
std::optional<at::Tensor> ruled_mask(const MaskRule& rule, const AttentionConfig& config, const MaskPlace& place,
                                     const at::Tensor& real_keys, const std::optional<at::Tensor>& honest);

/// A layer whose mask is a rule.
template <typename Layer>
struct RuledMask : Layer {
  RuledMask(const AttentionConfig& config, MaskRule told) : Layer(config), rule(std::move(told)) {}
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    return ruled_mask(rule, this->config_, place, real_keys, Layer::mask(place, real_keys));
  }
  MaskRule rule;
};

/// A rule may depend on the run's sizes.
using MaskRuleOf = std::function<MaskRule(const RunConfig&)>;

/// The entry of a fault of the mask. After `needs` it needs one pair at least that the rule masks otherwise than
/// declared: "no pair of query and key is masked otherwise".
FaultEntry ruled_fault(FaultInfo info, std::vector<Need> needs, MaskRuleOf rule);
FaultEntry ruled_fault(FaultInfo info, std::vector<Need> needs, bool (*rule)(const MaskedPair&));

/// Layers with the rule.
Planting ruled_planting(MaskRuleOf rule);

/// Whether the rule masks some pair of the run otherwise than declared.
bool masks_otherwise(const MaskRule& rule, const RunConfig& run);

}  // namespace attn
