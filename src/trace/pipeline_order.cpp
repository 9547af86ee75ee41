#include "trace/pipeline_order.h"

#include <optional>

#include "attention/steps.h"
#include "config/attention_config.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::string_view kForwardPrefix = "forward.";
constexpr std::int64_t kCall = 100;                        ///< places of one forward call: more than there are steps.
constexpr std::int64_t kBackward = std::int64_t{1} << 60;  ///< behind every call.
static_assert(kStepNames.size() < kCall);

/// The number in front of a step, "3" in "3.scores"; 0 where there is none. `rest` is what follows it.
std::int64_t call_of(std::string_view text, std::string_view& rest) {
  rest = text;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return 0;
  const std::optional<std::int64_t> number = parse_int64(text.substr(0, dot));
  if (!number.has_value() || *number < 1 || *number > kMaxSize) return 0;
  rest = text.substr(dot + 1);
  return *number;
}

/// The step that a parameter's projection, or its embedding, ends in: its gradient comes right after that step's.
Step step_of_parameter(std::string_view parameter) {
  const std::string_view layer = parameter.substr(0, parameter.find('.'));
  if (layer == "c_proj" || layer == "o_proj") return Step::kProjected;
  if (layer == "c_attn" || layer == "qkv_proj") return Step::kQkv;
  if (layer == "q_norm") return Step::kQNormed;
  if (layer == "k_norm") return Step::kKNormed;
  if (layer == "sinks") return Step::kWeights;
  // q_proj, k_proj, v_proj, token_embedding, position_embedding: named as their step. Another's parameters come last.
  return find_step(layer).value_or(Step::kTokens);
}

std::int64_t backward_place(Step step) {
  return kBackward + 2 * (static_cast<int>(Step::kOutput) - static_cast<int>(step));
}

bool is_map(std::string_view step) { return step.ends_with("scores") || step.ends_with("weights"); }

/// Of keys or of values: they may have fewer heads than the queries.
bool is_of_keys(Step step) {
  switch (step) {
    case Step::kK:
    case Step::kV:
    case Step::kKNormed:
    case Step::kKRotated:
    case Step::kKCached:
    case Step::kVCached:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view step_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  std::string_view step = name.substr(prefix.size());
  if (prefix == kForwardPrefix) call_of(step, step);
  return find_step(step).has_value() ? step : std::string_view{};
}

std::int64_t pipeline_place(std::string_view name) {
  if (const auto step = find_step(step_of(name, kForwardPrefix))) {
    std::string_view rest;
    return kCall * (1 + call_of(name.substr(kForwardPrefix.size()), rest)) + static_cast<std::int64_t>(*step);
  }
  if (const auto step = find_step(step_of(name, "backward."))) return backward_place(*step);
  constexpr std::string_view kGradient = "gradient.";
  if (!name.starts_with(kGradient)) return 0;
  return backward_place(step_of_parameter(name.substr(kGradient.size()))) + 1;
}

std::vector<std::string> axis_names(std::string_view name, std::size_t axes, bool grouped) {
  std::string_view step = step_of(name, kForwardPrefix);
  if (step.empty()) step = step_of(name, "backward.");
  if (is_map(step)) {
    if (axes == 4) return {"batch", "head", "query", "key"};
    if (axes == 3) return {"batch", "query", "key"};
  } else if (!step.empty()) {
    const bool of_keys = grouped && is_of_keys(*find_step(step));
    if (axes == 4) return {"batch", of_keys ? "key head" : "head", "token", "channel"};
    if (axes == 3) return {"batch", "token", "channel"};
    if (axes == 2 && step == "tokens") return {"batch", "token"};
    if (axes == 2) return {"token", "channel"};
  } else if (name.ends_with("embedding.weight") && axes == 2) {
    return {"row", "channel"};
  } else if (name.ends_with("sinks") && axes == 1) {
    return {"head"};
  } else if (name.ends_with("norm.weight") && axes == 1) {
    return {"channel"};
  } else if (name.ends_with(".weight") && axes == 2) {
    return {"output", "input"};
  } else if (name.ends_with(".bias") && axes == 1) {
    return {"output"};
  }
  std::vector<std::string> names;
  for (std::size_t axis = 0; axis < axes; ++axis) names.push_back("axis " + std::to_string(axis));
  return names;
}

}  // namespace attn
