// What people get wrong between the projections and softmax: norm, rotation, softcap, ALiBi.
#include <algorithm>

#include "checks/diagnosis/mistake_collector.h"
#include "core/text.h"

namespace attn {

void add_score_mistakes(MistakeCollector& mistakes) {
  const AttentionConfig& config = mistakes.config();
  if (config.softcap.has_value()) {
    mistakes.add("the softcap is left out", [](KnownMistake& mistake) { mistake.rules.scores.softcap.reset(); });
    mistakes.add("the softcap is applied after the mask: hidden keys get the score -" + format_number(*config.softcap),
                 [](KnownMistake& mistake) { mistake.rules.softcap_after_mask = true; });
  }
  if (config.alibi) {
    mistakes.add("the ALiBi bias is left out", [](KnownMistake& mistake) { mistake.rules.scores.slopes.clear(); });
    mistakes.add("the ALiBi slopes of the heads stand in reverse order", [](KnownMistake& mistake) {
      std::vector<double>& slopes = mistake.rules.scores.slopes;
      std::reverse(slopes.begin(), slopes.end());
    });
  }
}

void add_rotation_mistakes(MistakeCollector& mistakes) {
  const AttentionConfig& config = mistakes.config();
  const auto add = [&](const std::string& words, const auto& change) {
    mistakes.add(words, [&](KnownMistake& mistake) { change(mistake.rules); });
  };
  if (config.qk_norm) add("q and k are not normalised", [](LayerRules& rules) { rules.norm = NormRule::kNone; });
  if (!config.rope.has_value()) return;
  if (config.qk_norm) {
    add("q and k are normalised after they are turned", [](LayerRules& rules) { rules.norm = NormRule::kAfterRope; });
  }
  const RopeStyle other = config.rope->style == RopeStyle::kHalf ? RopeStyle::kAdjacent : RopeStyle::kHalf;
  add("rope pairs channels in the style " + in_quotes(to_string(other)) + " instead of " +
          in_quotes(to_string(config.rope->style)),
      [&](LayerRules& rules) { rules.rope->style = other; });
  add("rope is left out", [](LayerRules& rules) { rules.rope.reset(); });
  add("rope turns v too", [](LayerRules& rules) { rules.turned = {true, true, true}; });
  add("rope turns q only", [](LayerRules& rules) { rules.turned = {true, false, false}; });
  add("rope turns k only", [](LayerRules& rules) { rules.turned = {false, true, false}; });
  constexpr double kUsualTheta = 10000.0;
  if (config.rope->theta != kUsualTheta) {
    add("rope's theta is 10000 instead of the config's " + format_number(config.rope->theta),
        [](LayerRules& rules) { rules.rope->theta = kUsualTheta; });
  }
  if (config.rope->scaling.kind != RopeScalingKind::kNone) {
    add("rope's scaling " + in_quotes(to_string(config.rope->scaling.kind)) + " is ignored",
        [](LayerRules& rules) { rules.rope->scaling = RopeScaling{}; });
  }
}

}  // namespace attn
