#include "checks/reference_sample.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "checks/check_context.h"
#include "checks/input_parts.h"
#include "checks/reference/reference_layer.h"

namespace attn {
namespace {

/// `count` of the first `all` numbers at random, in order.
std::vector<std::int64_t> random_places(const CheckContext& context, std::int64_t all, std::int64_t count) {
  const at::Tensor order = context.draw({all}, Draw::kSample).to(at::kCPU, at::kDouble).argsort();
  std::vector<std::int64_t> places;
  for (std::int64_t index = 0; index < count; ++index) places.push_back(order[index].item<std::int64_t>());
  std::sort(places.begin(), places.end());
  return places;
}

std::string some_of(std::int64_t count, std::int64_t all, const std::string& things) {
  return std::to_string(count) + " of " + std::to_string(all) + " " + things;
}

/// How many of 1 ... most (at least 1) cost no more than the budget, where the cost rises with the number.
template <typename Cost>
std::int64_t affordable(std::int64_t most, double budget, const Cost& cost) {
  std::int64_t low = 1, high = most;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (cost(middle) <= budget) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

at::Tensor chosen_tokens(const at::Tensor& tensor, const std::vector<std::int64_t>& tokens) {
  if (!tensor.defined()) return tensor;
  return tensor.index_select(1, at::tensor(tokens, at::kLong).to(tensor.device()));
}

}  // namespace

ReferenceSample reference_sample(const CheckContext& context, double budget) {
  const AttentionConfig& config = context.config();
  const std::int64_t B = context.B(), T = context.T(), T_k = context.T_k();
  ReferenceSample sample;
  sample.input = context.input();
  if (reference_layer_cost(config, B, T_k, T) <= budget) return sample;

  sample.item = random_places(context, B, 1).front();
  sample.input = items_of(context.input(), sample.item, 1);
  const std::string of_item = " of item " + std::to_string(sample.item);
  const auto cost_of_rows = [&](std::int64_t rows) { return reference_layer_cost(config, 1, T_k, rows); };
  if (cost_of_rows(T) <= budget) {
    sample.words = "1 of " + std::to_string(B) + " items, item " + std::to_string(sample.item);
    return sample;
  }
  if (cost_of_rows(1) <= budget) {
    sample.rows = random_places(context, T, affordable(T, budget, cost_of_rows));
    sample.words = some_of(static_cast<std::int64_t>(sample.rows.size()), T, "rows") + of_item;
    return sample;
  }
  const auto keys_of = [&](std::int64_t tokens) { return context.has_memory() ? std::min(tokens, T_k) : tokens; };
  const std::int64_t tokens = affordable(
      T, budget, [&](std::int64_t length) { return reference_layer_cost(config, 1, keys_of(length), length); });
  const std::vector<std::int64_t> queries = random_places(context, T, tokens);
  const std::vector<std::int64_t> keys = context.has_memory() ? random_places(context, T_k, keys_of(tokens)) : queries;
  sample.input.x = chosen_tokens(sample.input.x, queries);
  sample.input.memory = chosen_tokens(sample.input.memory, keys);
  sample.input.real_keys = chosen_tokens(sample.input.real_keys, keys);
  sample.words = some_of(tokens, T, "tokens") +
                 (context.has_memory() ? " and " + some_of(keys_of(tokens), T_k, "keys") : "") + of_item +
                 " as a shorter input";
  return sample;
}

}  // namespace attn
