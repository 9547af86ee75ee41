// What many faults need to show.
#include <cmath>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "core/text.h"

namespace attn {

std::string needs_visible_key(const RunConfig& run) {
  return some_row(run, [](const DeclaredRow& row) { return !row.keys.empty(); }) ? "" : "no query may look at any key";
}

std::string needs_competing_keys(const RunConfig& run) {
  const std::size_t enough = run.attention.sink ? 1 : 2;
  if (some_row(run, [&](const DeclaredRow& row) { return row.keys.size() >= enough; })) return "";
  if (run.attention.sink) return needs_visible_key(run);
  const std::string keys = DeclaredPairs(run).keys() > 1   ? "every query sees one key at most"
                           : run.memory_length.has_value() ? "T_k is 1"
                                                           : "T is 1";
  return keys + ": one key has weight 1, whatever its score";
}

std::string needs_two_places(const RunConfig& run) {
  std::string missing = needs_competing_keys(run);
  if (!missing.empty() || !run.attention.sink) return missing;
  const bool some = some_visible_pair(run, [](std::int64_t query, std::int64_t key) { return query != key; });
  return some ? "" : "every query sees itself at most";
}

std::string needs_two_tokens(const RunConfig& run) { return run.T == 1 ? "T is 1: no two tokens can be confused" : ""; }

std::string needs_causal(const RunConfig& run) { return run.attention.causal ? "" : "the layer is not causal"; }

std::string needs_a_future(const RunConfig& run) {
  if (!run.attention.causal) return "the layer is not causal";
  return run.T == 1 ? "T is 1: there is no future" : "";
}

std::string needs_two_heads(const RunConfig& run) { return run.attention.H == 1 ? "H is 1" : ""; }

std::string needs_two_key_heads(const RunConfig& run) {
  return run.attention.H_kv() == 1 ? "H_kv is 1: there is one key head" : "";
}

std::string needs_unlike_heads(const RunConfig& run) {
  if (run.attention.H == 1) return "H is 1";
  if (run.attention.H_kv() > 1) return needs_visible_key(run);
  return needs_competing_keys(run).empty() ? "" : "H_kv is 1, and no score says anything: all heads are alike";
}

std::string needs_head_axis(const RunConfig& run) {
  return run.attention.module == ModuleKind::kSingleHead ? "the layer has no head axis" : "";
}

std::string needs_half_hidden_row(const RunConfig& run) {
  const auto keys = static_cast<std::size_t>(DeclaredPairs(run).keys());
  const bool some = some_row(run, [&](const DeclaredRow& row) { return !row.keys.empty() && row.keys.size() < keys; });
  return some ? "" : "no query sees some keys and not others";
}

double usual_score(const AttentionConfig& layer) {
  const auto d_k = static_cast<double>(layer.d_k());
  return layer.scale() * (layer.qk_norm ? d_k : std::sqrt(d_k));
}

/// A score a hundred times as large as its softcap has the slope 0 in every format: 1 - tanh(100)^2 is 4e-87.
std::string needs_slope(const RunConfig& run) {
  constexpr double kFlat = 100.0;
  const AttentionConfig& layer = run.attention;
  if (!layer.softcap.has_value()) return "";
  if (usual_score(layer) < kFlat * *layer.softcap) return "";
  return "softcap " + format_number(*layer.softcap) + " flattens all scores: no gradient comes back through them";
}

std::string needs_dropout(const RunConfig& run) { return run.attention.dropout == 0.0 ? "dropout is 0" : ""; }

std::string needs_pieces(const RunConfig& run) {
  if (run.memory_length.has_value()) return "keys come from a memory: there is no cache";
  if (!run.attention.causal) return "the layer is not causal: it cannot run in pieces";
  return run.T == 1 ? "T is 1: it cannot be made in pieces" : "";
}

std::string needs_fine_numbers(const RunConfig& run) {
  return element_size(run.dtype) == 2 ? "a millionth vanishes beside numbers of " + to_string(run.dtype) : "";
}

}  // namespace attn
