#include "checks/input_parts.h"

#include <ATen/ATen.h>

#include <functional>

namespace attn {
namespace {

/// Every part that is there, changed alike.
AttentionInput each_part(const AttentionInput& input, const std::function<at::Tensor(const at::Tensor&)>& change) {
  AttentionInput changed = input;
  changed.x = change(input.x);
  if (input.memory.defined()) changed.memory = change(input.memory);
  if (input.real_keys.defined()) changed.real_keys = change(input.real_keys);
  return changed;
}

}  // namespace

AttentionInput items_of(const AttentionInput& input, std::int64_t first, std::int64_t count) {
  return each_part(input, [&](const at::Tensor& part) { return part.narrow(0, first, count); });
}

AttentionInput chosen_items(const AttentionInput& input, const std::vector<std::int64_t>& items) {
  const at::Tensor chosen = at::tensor(items, at::kLong).to(input.x.device());
  return each_part(input, [&](const at::Tensor& part) { return part.index_select(0, chosen); });
}

AttentionInput with_x(const AttentionInput& input, const at::Tensor& x) {
  AttentionInput changed = input;
  changed.x = x;
  return changed;
}

const at::Tensor& key_source(const AttentionInput& input) { return input.memory.defined() ? input.memory : input.x; }

AttentionInput with_key_source(const AttentionInput& input, const at::Tensor& source) {
  AttentionInput changed = input;
  (input.memory.defined() ? changed.memory : changed.x) = source;
  return changed;
}

AttentionInput in_type(const AttentionInput& input, at::ScalarType type) {
  AttentionInput changed = with_x(input, input.x.to(type));
  if (input.memory.defined()) changed.memory = input.memory.to(type);
  return changed;
}

}  // namespace attn
