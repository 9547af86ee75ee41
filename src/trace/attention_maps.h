// The (B, H, T, T) steps of one run as plain matrices: what a heatmap shows. No LibTorch.
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
  std::vector<bool> visible;       ///< T_q * T_k, by row: may query i look at key j? The layer's declared mask.
  std::vector<std::vector<std::string>> token_labels;  ///< B lists of T; empty when the input has no words.
  std::vector<std::string> notes;                      ///< for stderr.
};

/// Which of them: absent means all.
struct MapSelection {
  std::vector<std::int64_t> batches;  ///< empty: all.
  std::vector<std::int64_t> heads;    ///< empty: all.
};

/// Whether a step has a (T_q, T_k) map for each head: scores, scaled_scores, masked_scores, weights, dropped_weights.
bool is_attention_map(Step step);

/// The names of those steps, in order.
std::vector<std::string> map_step_names();

/// Runs the layer forward in the config's mode and keeps one step. Throws ConfigError for a step that is no map, a
/// batch or head outside the config's; else as trace_attention().
AttentionMaps capture_attention_maps(const RunConfig& config, Step step, const MapSelection& selection = {});

}  // namespace attn
