#include "checks/faults/ruled_masks.h"

#include <ATen/ATen.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "checks/faults/declared_pairs.h"
#include "checks/reference/may_look.h"

namespace attn {
namespace {

std::string needs_another_mask(const MaskRule& rule, const RunConfig& run) {
  return masks_otherwise(rule, run) ? "" : "no pair of query and key is masked otherwise";
}

}  // namespace

bool causal_allows(const MaskedPair& pair) { return !pair.config.causal || pair.key <= pair.query; }

bool window_allows(const MaskedPair& pair) {
  return !pair.config.window.has_value() || std::abs(pair.query - pair.key) < *pair.config.window;
}

bool own_mask_allows(const MaskedPair& pair) {
  return !pair.config.mask.has_value() || own_mask_allows(*pair.config.mask, pair.query, pair.key);
}

bool allowed_without_window(const MaskedPair& pair) {
  return causal_allows(pair) && own_mask_allows(pair) && pair.key_is_token;
}

std::optional<at::Tensor> ruled_mask(const MaskRule& rule, const AttentionConfig& config, const MaskPlace& place,
                                     const at::Tensor& real_keys, const std::optional<at::Tensor>& honest) {
  const std::int64_t items = real_keys.defined() ? real_keys.size(0) : 1;
  at::Tensor real, mask = at::empty({items, place.query_len, place.key_len}, at::kBool);
  if (real_keys.defined()) real = real_keys.cpu().contiguous();
  const bool* tokens = real.defined() ? real.data_ptr<bool>() : nullptr;
  bool* cell = mask.data_ptr<bool>();
  for (std::int64_t item = 0; item < items; ++item) {
    const auto is_token = [&](std::int64_t key) {
      const bool inside = tokens != nullptr && 0 <= key && key < place.key_len;
      return !inside || tokens[item * place.key_len + key];
    };
    for (std::int64_t i = 0; i < place.query_len; ++i) {
      const std::int64_t query = place.first_query + i;
      for (std::int64_t j = 0; j < place.key_len; ++j) {
        *cell++ = rule({config, place, query, place.first_key + j, is_token(j), is_token(query - place.first_key)});
      }
    }
  }
  if (!real_keys.defined()) mask = mask.squeeze(0);
  if (real_keys.defined() && config.module == ModuleKind::kMultiHead) mask = mask.unsqueeze(1);
  const bool hides_nothing = mask.all().item<bool>();
  if (honest.has_value() ? at::equal(mask, honest->cpu()) : hides_nothing) return honest;
  return honest.has_value() ? mask.to(honest->device()) : mask;
}

bool masks_otherwise(const MaskRule& rule, const RunConfig& run) {
  const DeclaredPairs pairs(run);
  const MaskPlace place{pairs.queries(), pairs.keys()};
  for (std::int64_t item = 0; item < pairs.items(); ++item) {
    for (std::int64_t i = 0; i < pairs.queries(); ++i) {
      const bool query_is_token = i >= pairs.keys() || pairs.is_token(item, i);
      for (std::int64_t j = 0; j < pairs.keys(); ++j) {
        const bool ruled = rule({run.attention, place, i, j, pairs.is_token(item, j), query_is_token});
        if (ruled != pairs.visible(item, i, j)) return true;
      }
    }
  }
  return false;
}

Planting ruled_planting(MaskRuleOf rule) {
  return {[rule = std::move(rule)] {
    return [rule](const RunConfig& run) {
      const bool single_head = run.attention.module == ModuleKind::kSingleHead;
      const auto make = [&](const AttentionConfig& sizes) -> std::shared_ptr<MultiHeadAttentionImpl> {
        if (single_head) return std::make_shared<RuledMask<SingleHeadAttentionImpl>>(sizes, rule(run));
        return std::make_shared<RuledMask<MultiHeadAttentionImpl>>(sizes, rule(run));
      };
      return make_layer(run, LayerMaker(make));
    };
  }};
}

FaultEntry ruled_fault(FaultInfo info, std::vector<Need> needs, MaskRuleOf rule) {
  needs.emplace_back([rule](const RunConfig& run) { return needs_another_mask(rule(run), run); });
  return {std::move(info), std::move(needs), ruled_planting(std::move(rule))};
}

FaultEntry ruled_fault(FaultInfo info, std::vector<Need> needs, bool (*rule)(const MaskedPair&)) {
  return ruled_fault(std::move(info), std::move(needs), [rule](const RunConfig&) { return MaskRule(rule); });
}

}  // namespace attn
