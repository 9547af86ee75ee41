#include "checks/ruled_out.h"

#include <algorithm>

namespace attn {
namespace {

/// "T_k is 1", "T is 1"; empty when there are several keys.
std::string single_key(const RunConfig& config) {
  if (key_length(config) > 1) return "";
  return config.memory_length ? "T_k is 1" : "T is 1";
}

}  // namespace

std::string never_ruled_out(const RunConfig& /*config*/) { return ""; }

std::string without_future(const RunConfig& config) {
  if (!config.attention.causal) return "the layer is not causal";
  return config.T == 1 ? "T is 1: there is no future" : "";
}

std::string without_first_token(const RunConfig& config) {
  if (const std::string why = without_future(config); !why.empty()) return why;
  return config.attention.sink ? "the sink takes its share of the first token's value" : "";
}

std::string without_calls(const RunConfig& config) {
  if (config.memory_length) return "keys and values of a memory do not grow";
  if (!config.attention.causal) return "the layer is not causal: earlier outputs owe to later tokens";
  return config.T == 1 ? "T is 1: there is no second call" : "";
}

std::string without_keys_to_compare(const RunConfig& config) {
  const std::string single = config.attention.sink ? "" : single_key(config);  // a sink competes with the key
  return single.empty() ? "" : single + ": with one key every scale gives weight 1";
}

std::string without_order(const RunConfig& config) {
  if (const std::string single = single_key(config); !single.empty()) return single + ": there is only one order";
  return config.attention.alibi ? "alibi gives every key a bias by its place, so its place counts" : "";
}

std::string without_weights(const RunConfig& config) {
  return config.attention.engine == Engine::kSdpa ? "engine sdpa shows no weights" : "";
}

std::string without_scores(const RunConfig& config) {
  if (const std::string why = without_keys_to_compare(config); !why.empty()) return why;
  return config.attention.engine == Engine::kSdpa ? "engine sdpa shows no scores" : "";
}

std::string without_library(const RunConfig& config) {
  if (config.attention.softcap) return "LibTorch's function has no softcap";
  return config.attention.sink ? "LibTorch's function has no sink" : "";
}

std::string without_other_head(const RunConfig& config) {
  return config.attention.H == 1 ? "H is 1: there is no other head" : "";
}

std::string without_groups(const RunConfig& config) {
  return config.attention.heads_a_group() == 1 ? "H_kv is H: every head has keys and values of its own" : "";
}

std::string without_rope(const RunConfig& config) { return config.attention.rope ? "" : "the config has no rope"; }

std::string without_window(const RunConfig& config) {
  return config.attention.window ? "" : "the config has no window";
}

std::string without_padding(const RunConfig& config) {
  if (!config.padding) return "the config has no padding";
  const bool all_whole = std::all_of(config.lengths.begin(), config.lengths.end(),
                                     [&](std::int64_t length) { return length == key_length(config); });
  return all_whole ? "no item is shorter than the others: nothing is filled up" : "";
}

std::string without_sink(const RunConfig& config) { return config.attention.sink ? "" : "the config has no sink"; }

std::string without_dropout(const RunConfig& config) { return config.attention.dropout == 0.0 ? "dropout is 0" : ""; }

}  // namespace attn
