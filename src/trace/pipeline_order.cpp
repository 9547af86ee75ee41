#include "trace/pipeline_order.h"

#include "attention/steps.h"

namespace attn {
namespace {

constexpr int kForward = 1000;
constexpr int kBackward = 2000;

/// The step that a parameter's projection, or its embedding, ends in: its gradient comes right after that step's.
Step step_of_parameter(std::string_view parameter) {
  const std::string_view layer = parameter.substr(0, parameter.find('.'));
  if (layer == "c_proj" || layer == "o_proj") return Step::kProjected;
  if (layer == "c_attn" || layer == "qkv_proj") return Step::kQkv;
  // q_proj, k_proj, v_proj, token_embedding, position_embedding: named as their step. Another's parameters come last.
  return find_step(layer).value_or(Step::kTokens);
}

int backward_place(Step step) { return kBackward + 2 * (static_cast<int>(Step::kOutput) - static_cast<int>(step)); }

bool is_map(std::string_view step) { return step.ends_with("scores") || step.ends_with("weights"); }

}  // namespace

std::string_view step_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  const std::string_view step = name.substr(prefix.size());
  return find_step(step).has_value() ? step : std::string_view{};
}

int pipeline_place(std::string_view name) {
  if (const auto step = find_step(step_of(name, "forward."))) return kForward + static_cast<int>(*step);
  if (const auto step = find_step(step_of(name, "backward."))) return backward_place(*step);
  constexpr std::string_view kGradient = "gradient.";
  if (!name.starts_with(kGradient)) return 0;
  return backward_place(step_of_parameter(name.substr(kGradient.size()))) + 1;
}

std::vector<std::string> axis_names(std::string_view name, std::size_t axes) {
  std::string_view step = step_of(name, "forward.");
  if (step.empty()) step = step_of(name, "backward.");
  if (is_map(step)) {
    if (axes == 4) return {"batch", "head", "query", "key"};
    if (axes == 3) return {"batch", "query", "key"};
  } else if (!step.empty()) {
    if (axes == 4) return {"batch", "head", "token", "channel"};
    if (axes == 3) return {"batch", "token", "channel"};
    if (axes == 2 && step == "tokens") return {"batch", "token"};
    if (axes == 2) return {"token", "channel"};
  } else if (name.ends_with("embedding.weight") && axes == 2) {
    return {"row", "channel"};
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
