#include "checks/diagnosis/cache_mistakes.h"

#include <utility>

namespace attn {

std::vector<CacheMistake> known_cache_mistakes(const LayerInput& input) {
  const AttentionConfig& config = input.config;
  std::vector<CacheMistake> mistakes;
  const auto add = [&](const std::string& words, const auto& change) {
    PieceRules rules;
    change(rules);
    mistakes.push_back({"with a cache, " + words, std::move(rules)});
  };
  add("earlier keys and values are not used: each call sees its own tokens only",
      [](PieceRules& rules) { rules.most_kept = 0; });
  add("the mask is aligned to the first key instead of the last",
      [](PieceRules& rules) { rules.mask = CallMask::kAtFirstKey; });
  add("no mask is applied from the second call on", [](PieceRules& rules) { rules.mask = CallMask::kNone; });
  add("the keys and values of a call are appended twice and push the oldest out",
      [](PieceRules& rules) { rules.keys = KeptKeys::kAppendedTwice; });
  add("the last key and value of the call before are 0", [](PieceRules& rules) { rules.keys = KeptKeys::kLastLost; });
  if (config.rope.has_value()) {
    add("rope counts positions from 0 in every call", [](PieceRules& rules) { rules.positions_restart = true; });
  }
  if (config.window.has_value()) {
    const std::int64_t window = *config.window;
    const std::string of_window = "the window of " + std::to_string(window);
    add(of_window + " is not applied from the second call on",
        [](PieceRules& rules) { rules.mask = CallMask::kWithoutWindow; });
    if (window > 1) {
      add("one key too few is kept for " + of_window + ": " + std::to_string(window - 2) + " instead of " +
              std::to_string(window - 1),
          [&](PieceRules& rules) { rules.most_kept = window - 2; });
    }
  }
  if (input.real_keys.defined()) {
    add("the padding of earlier calls is forgotten", [](PieceRules& rules) { rules.padding_kept = false; });
  }
  return mistakes;
}

}  // namespace attn
