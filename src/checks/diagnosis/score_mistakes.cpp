// What people get wrong between the projections and softmax: norm, rotation, softcap, ALiBi, sink.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "checks/diagnosis/mistake_collector.h"
#include "core/text.h"

namespace attn {
namespace {

void add_alibi(MistakeCollector& mistakes) {
  const std::vector<std::pair<std::string, double>> factors{
      {"the ALiBi bias is left out", 0.0},
      {"the ALiBi bias has the wrong sign: keys further away are preferred", -1.0},
      {"the ALiBi bias is added twice", 2.0}};
  for (const auto& [words, factor] : factors) {
    mistakes.add(words, [&times = factor](KnownMistake& mistake) {
      for (double& slope : mistake.rules.scores.slopes) slope *= times;
    });
  }
  mistakes.add("the ALiBi slopes of the heads stand in reverse order", [](KnownMistake& mistake) {
    std::vector<double>& slopes = mistake.rules.scores.slopes;
    std::reverse(slopes.begin(), slopes.end());
  });
}

void add_sink(MistakeCollector& mistakes) {
  mistakes.add("the sink is left out of the softmax", [](KnownMistake& mistake) { mistake.rules.sink = false; });
  mistakes.add("the sink is scaled, as if it were a dot product", [](KnownMistake& mistake) {
    at::Tensor& sinks = mistake.input.parameters.at("sinks");
    sinks = sinks * mistake.rules.scores.scale;
  });
  mistakes.add("every head has the sink of head 0", [](KnownMistake& mistake) {
    at::Tensor& sinks = mistake.input.parameters.at("sinks");
    sinks = sinks.narrow(0, 0, 1).expand_as(sinks);
  });
}

void add_rope(MistakeCollector& mistakes) {
  const RopeConfig& rope = *mistakes.config().rope;
  const auto add = [&](const std::string& words, const auto& change) {
    mistakes.add(words, [&](KnownMistake& mistake) { change(mistake.rules); });
  };
  const RopeStyle other = rope.style == RopeStyle::kHalf ? RopeStyle::kAdjacent : RopeStyle::kHalf;
  add("rope pairs channels in the style " + in_quotes(to_string(other)) + " instead of " +
          in_quotes(to_string(rope.style)),
      [&](LayerRules& rules) { rules.rope->style = other; });
  add("rope is left out", [](LayerRules& rules) { rules.rope.reset(); });
  add("rope turns v too", [](LayerRules& rules) { rules.turned = {true, true, true}; });
  add("rope turns q only", [](LayerRules& rules) { rules.turned = {true, false, false}; });
  add("rope turns k only", [](LayerRules& rules) { rules.turned = {false, true, false}; });
  const at::Tensor one_further = at::arange(mistakes.input().x.size(1), at::kDouble) + 1.0;
  add("rope turns q one position too far", [&](LayerRules& rules) { rules.positions[0] = one_further; });
  add("rope turns k one position too far", [&](LayerRules& rules) { rules.positions[1] = one_further; });
  add("rope's cos and sin are rounded to bfloat16", [](LayerRules& rules) { rules.rope_table = at::kBFloat16; });
  add("rope's cos and sin are rounded to float16", [](LayerRules& rules) { rules.rope_table = at::kHalf; });
  constexpr double kUsualTheta = 10000.0;
  if (rope.theta != kUsualTheta) {
    add("rope's theta is 10000 instead of the config's " + format_number(rope.theta),
        [](LayerRules& rules) { rules.rope->theta = kUsualTheta; });
  }
  if (rope.scaling.kind != RopeScalingKind::kNone) {
    add("rope's scaling " + in_quotes(to_string(rope.scaling.kind)) + " is ignored",
        [](LayerRules& rules) { rules.rope->scaling = RopeScaling{}; });
  }
}

}  // namespace

void add_score_mistakes(MistakeCollector& mistakes) {
  const AttentionConfig& config = mistakes.config();
  if (config.softcap.has_value()) {
    mistakes.add("the softcap is left out", [](KnownMistake& mistake) { mistake.rules.scores.softcap.reset(); });
    mistakes.add("the softcap is applied after the mask: hidden keys get the score -" + format_number(*config.softcap),
                 [](KnownMistake& mistake) { mistake.rules.softcap_after_mask = true; });
    mistakes.add("the softcap is applied before the scale",
                 [](KnownMistake& mistake) { mistake.rules.scores.capped_before_scale = true; });
  }
  if (config.alibi) add_alibi(mistakes);
  if (config.sink) add_sink(mistakes);
}

void add_rotation_mistakes(MistakeCollector& mistakes) {
  const AttentionConfig& config = mistakes.config();
  const auto add = [&](const std::string& words, const auto& change) {
    mistakes.add(words, [&](KnownMistake& mistake) { change(mistake.rules); });
  };
  if (config.qk_norm) {
    add("q and k are not normalised", [](LayerRules& rules) { rules.norm = NormRule::kNone; });
    add("q and k are normalised over all heads together", [](LayerRules& rules) { rules.norm_over_heads = true; });
    add_unweighted_norm(mistakes);
  }
  if (config.qk_norm && config.rope.has_value()) {
    add("q and k are normalised after they are turned", [](LayerRules& rules) { rules.norm = NormRule::kAfterRope; });
  }
  if (config.rope.has_value()) add_rope(mistakes);
}

void add_unweighted_norm(MistakeCollector& mistakes) {
  if (!mistakes.config().qk_norm) return;
  mistakes.add("q and k are normalised without the norm's weight",
               [](KnownMistake& mistake) { mistake.rules.norm_weighted = false; });
}

}  // namespace attn
