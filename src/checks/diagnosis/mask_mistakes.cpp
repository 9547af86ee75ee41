// What people get wrong about masks: causal, window, one's own, padding.
#include <string>
#include <vector>

#include "checks/diagnosis/mistake_collector.h"
#include "core/text.h"

namespace attn {
namespace {

/// What may happen to any mask. Words for the causal one alone, or for all that the config combines.
void add_any_mask(MistakeCollector& mistakes) {
  const auto add = [&](const std::string& words, MaskRule rule) {
    mistakes.add(words, [&](KnownMistake& mistake) { mistake.rules.mask = rule; });
  };
  const bool causal = mistakes.config().causal;
  if (!causal && !mistakes.hides_more()) return;
  add("no mask is applied", MaskRule::kNone);
  const bool alone = causal && !mistakes.hides_more();
  add(alone ? "the mask is inverted: each query sees later keys only" : "the mask is inverted: what is hidden is seen",
      MaskRule::kInverted);
  add("the mask is applied after the softmax, and rows are not normalised again", MaskRule::kAfterSoftmax);
}

/// "the window, to both sides, and the padding mask"
std::string other_masks(const MistakeCollector& mistakes) {
  std::vector<std::string> others;
  if (mistakes.config().window.has_value()) others.emplace_back("the window, to both sides,");
  if (mistakes.config().mask.has_value()) others.emplace_back("the config's own mask");
  if (mistakes.input().real_keys.defined()) others.emplace_back("the padding mask");
  return join(others, " and ") + (others.size() == 1 ? " is" : " are");
}

void add_causal_mask(MistakeCollector& mistakes) {
  if (mistakes.input().memory.defined()) return;
  if (!mistakes.config().causal) {
    mistakes.add("a causal mask is applied, the config has none",
                 [](KnownMistake& mistake) { mistake.rules.masked_by.causal = true; });
    return;
  }
  const auto add = [&](const std::string& words, CausalRule rule) {
    mistakes.add(words, [&](KnownMistake& mistake) { mistake.rules.causal = rule; });
  };
  add("the mask is shifted by one: each query also sees the next key", CausalRule::kNextToo);
  add("the mask is shifted by one: no query sees its own key", CausalRule::kNotItself);
  add("the mask is the upper triangle: each query sees its own and later keys", CausalRule::kFromItself);
  if (mistakes.hides_more()) {
    mistakes.add(other_masks(mistakes) + " applied in place of the causal one",
                 [](KnownMistake& mistake) { mistake.rules.masked_by.causal = false; });
  }
}

/// What a mask beside the causal one brings with it.
void add_more_masks(MistakeCollector& mistakes) {
  const AttentionConfig& config = mistakes.config();
  const bool square = mistakes.input().x.size(1) == mistakes.input().key_len();
  const auto add = [&](const std::string& words, const auto& change) {
    mistakes.add(words, [&](KnownMistake& mistake) { change(mistake.rules); });
  };
  if (config.window.has_value()) {
    const std::string window = "the window of " + std::to_string(*config.window);
    add(window + " has one key more: the token itself is not counted",
        [](LayerRules& rules) { ++*rules.masked_by.window; });
    if (*config.window > 1) {
      add(window + " has one key less", [](LayerRules& rules) { --*rules.masked_by.window; });
    }
    add(window + " is not applied", [](LayerRules& rules) { rules.masked_by.window.reset(); });
  }
  if (config.mask.has_value()) {
    add("the config's own mask is not applied", [](LayerRules& rules) { rules.masked_by.mask.reset(); });
    add("the config's own mask is inverted", [](LayerRules& rules) { rules.own_mask = OwnMaskRule::kInverted; });
    if (square) {
      add("the config's own mask is transposed: its rows are taken for keys",
          [](LayerRules& rules) { rules.own_mask = OwnMaskRule::kTransposed; });
    }
  }
  if (mistakes.input().real_keys.defined()) {
    add("padding is ignored", [](LayerRules& rules) { rules.padding = PaddingRule::kIgnored; });
    if (square) {
      add("padding hides queries instead of keys", [](LayerRules& rules) { rules.padding = PaddingRule::kQueries; });
    }
    add("each batch item has the padding of the one before",
        [](LayerRules& rules) { rules.padding = PaddingRule::kOfItemBefore; });
    add("padding is taken to be on the other side", [](LayerRules& rules) { rules.padding = PaddingRule::kOtherSide; });
  }
  if (mistakes.hides_more()) {
    add("a query that may look at no key looks at all keys alike",
        [](LayerRules& rules) { rules.empty_rows = EmptyRowRule::kAllAlike; });
    add("a query that may look at no key gets NaN, the softmax of nothing but -inf",
        [](LayerRules& rules) { rules.empty_rows = EmptyRowRule::kNan; });
  }
}

}  // namespace

void add_mask_mistakes(MistakeCollector& mistakes) {
  add_any_mask(mistakes);
  add_causal_mask(mistakes);
  add_more_masks(mistakes);
}

}  // namespace attn
