#include "checks/reference/reference_attention.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "checks/reference/may_look.h"
#include "checks/reference/reference_head.h"

namespace attn {
namespace {

std::size_t place(std::int64_t number) { return static_cast<std::size_t>(number); }

/// The `index`-th block of `size` numbers.
template <typename Numbers>
auto block(Numbers& numbers, std::int64_t index, std::int64_t size) {
  return std::span(numbers).subspan(place(index * size), place(size));
}

std::vector<std::int64_t> positions_of(const ReferenceCoreInput& input) {
  if (!input.positions.empty()) return input.positions;
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < input.T_q; ++i) {
    positions.push_back(query_position(input.config, i, input.T_q, input.T_k));
  }
  return positions;
}

std::vector<bool> visible_keys(const ReferenceCoreInput& input, std::int64_t b,
                               const std::vector<std::int64_t>& positions) {
  std::vector<bool> visible;
  visible.reserve(place(input.T_q * input.T_k));
  for (const std::int64_t position : positions) {
    for (std::int64_t j = 0; j < input.T_k; ++j) {
      const bool is_token = input.real_keys.empty() || input.real_keys[place(b * input.T_k + j)];
      visible.push_back(is_token && may_look_at(input.config, position, j));
    }
  }
  return visible;
}

/// Calls visit(head, place of its q among the query heads, place of its k and v among the key heads, h) for every head
/// of every item.
template <typename Visit>
void for_each_head(const ReferenceCoreInput& input, const Visit& visit) {
  const AttentionConfig& config = input.config;
  ReferenceHead head;
  head.T_q = input.T_q;
  head.T_k = input.T_k;
  head.d_k = config.d_k();
  head.scale = config.scale();
  head.softcap = config.softcap;
  head.positions = positions_of(input);
  for (std::int64_t b = 0; b < input.B; ++b) {
    head.visible = visible_keys(input, b, head.positions);
    for (std::int64_t h = 0; h < config.H; ++h) {
      const std::int64_t query_head = b * config.H + h;
      const std::int64_t key_head = b * config.H_kv() + reference_key_head(config, h);
      head.q = block(input.q, query_head, input.T_q * head.d_k);
      head.k = block(input.k, key_head, input.T_k * head.d_k);
      head.v = block(input.v, key_head, input.T_k * head.d_k);
      if (config.alibi) head.slope = reference_alibi_slope(h, config.H);
      if (config.sink) head.sink = input.sinks.at(place(h));
      visit(head, query_head, key_head, h);
    }
  }
}

}  // namespace

std::int64_t reference_key_head(const AttentionConfig& config, std::int64_t h) { return h * config.H_kv() / config.H; }

ReferenceCoreOutput reference_core(const ReferenceCoreInput& input) {
  ReferenceCoreOutput output;
  for_each_head(input, [&](const ReferenceHead& head, std::int64_t, std::int64_t, std::int64_t) {
    const ReferenceHeadOutput of_head = reference_head(head);
    output.weights.insert(output.weights.end(), of_head.weights.begin(), of_head.weights.end());
    output.context.insert(output.context.end(), of_head.context.begin(), of_head.context.end());
  });
  return output;
}

ReferenceCoreGradients reference_core_backward(const ReferenceCoreInput& input, const std::vector<double>& d_context) {
  ReferenceCoreGradients gradients;
  gradients.dq.assign(input.q.size(), 0.0);
  gradients.dk.assign(input.k.size(), 0.0);
  gradients.dv.assign(input.v.size(), 0.0);
  gradients.dsinks.assign(input.sinks.size(), 0.0);
  const std::int64_t of_query = input.T_q * input.config.d_k(), of_key = input.T_k * input.config.d_k();
  for_each_head(input, [&](const ReferenceHead& head, std::int64_t query_head, std::int64_t key_head, std::int64_t h) {
    const double d_sink =
        reference_head_backward(head, block(d_context, query_head, of_query), block(gradients.dq, query_head, of_query),
                                block(gradients.dk, key_head, of_key), block(gradients.dv, key_head, of_key));
    if (head.sink.has_value()) gradients.dsinks[place(h)] += d_sink;
  });
  return gradients;
}

}  // namespace attn
