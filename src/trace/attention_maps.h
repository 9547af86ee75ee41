// The (B, H, T_q, T_k) steps of one run as plain matrices: what a heatmap shows. No LibTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attention/steps.h"
#include "config/run_config.h"
#include "core/matrix.h"

namespace attn {

/// One head's map.
struct AttentionMap {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  Matrix values;  ///< (T_q, T_k): queries down, keys across.
};

/// All maps of one run.
struct AttentionMaps {
  RunConfig config;
  std::string torch_version;
  int threads = 0;
  Step step = Step::kWeights;
  std::vector<AttentionMap> maps;  ///< by batch, then head.
  /// For each batch item T_q * T_k cells, by row: does the cell hold a number? Not where a key or a query is padding,
  /// nor what no call of a cached run has computed; from masked_scores on not what the layer's mask hides.
  std::vector<std::vector<bool>> visible;
  std::vector<std::vector<std::string>> token_labels;  ///< B lists of T_q; empty when the input has no words.
  std::vector<std::string> notes;                      ///< for stderr.
};

/// Which of them: absent means all.
struct MapSelection {
  std::vector<std::int64_t> batches;  ///< empty: all.
  std::vector<std::int64_t> heads;    ///< empty: all.
};

/// Whether a step has a (T_q, T_k) map for each head: scores, scaled_scores ... weights, dropped_weights.
bool is_attention_map(Step step);

/// The names of those steps, in order.
std::vector<std::string> map_step_names();

/// Whether the mask has been applied: what it hides is a number before, and none from here on.
bool is_after_mask(Step step);

/// Runs the layer forward in the config's mode and keeps one step. With a cache the maps of all calls are put together,
/// each query in its place in the sequence. Throws ConfigError for a step that is no map or that this layer has not,
/// the engine sdpa, a batch or head outside the config's; else as trace_attention().
AttentionMaps capture_attention_maps(const RunConfig& config, Step step, const MapSelection& selection = {});

}  // namespace attn
