// The maps of a run as pictures, and what index.json says of them. Called by the heatmap command, which writes them.
#pragma once

#include <string>
#include <vector>

#include "cli/progress.h"
#include "report/heatmap_index.h"
#include "trace/attention_maps.h"

namespace attn {

/// A drawn picture and what index.json says of it.
struct Picture {
  HeatmapFile facts;
  std::string png;
};

/// For each batch entry its overview, then its heads. Throws as draw_heatmap().
std::vector<Picture> draw_pictures(const AttentionMaps& maps, Progress& progress);

HeatmapIndex make_index(const AttentionMaps& maps, const std::vector<Picture>& pictures);

}  // namespace attn
