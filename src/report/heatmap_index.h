// The record of a folder of heatmaps: which file shows what, in which scale. Filled by `cli`, written as index.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// One picture.
struct HeatmapFile {
  std::string file;  ///< name within the folder.
  std::int64_t batch = 0;
  std::vector<std::int64_t> heads;        ///< one, or those of an overview.
  std::vector<std::int64_t> key_heads{};  ///< whose keys each of them uses.
  bool overview = false;
  double scale_low = 0.0;  ///< the numbers at the ends of the colour bar.
  double scale_high = 1.0;
  std::int64_t width = 0;  ///< pixels.
  std::int64_t height = 0;
  /// Where the cell of query 0 and key 0 starts and how large a cell is, in pixels; absent for an overview.
  struct Cells {
    std::int64_t x = 0;
    std::int64_t y = 0;
    std::int64_t size = 0;
  };
  std::optional<Cells> cells{};
};

/// All pictures of one run.
struct HeatmapIndex {
  RunConfig config;
  std::string torch_version;
  int threads = 0;
  std::string step;                                    ///< "weights"
  bool fixed_scale = true;                             ///< one scale for all files; else each file has its own.
  std::int64_t rows = 0;                               ///< queries, downwards.
  std::int64_t cols = 0;                               ///< keys, across.
  std::vector<std::vector<std::string>> token_labels;  ///< B lists of T, for the queries and, without a memory, for the
                                                       ///< keys; empty when the input has no words.
  std::vector<std::vector<std::int64_t>> padded_keys;  ///< B lists of columns that are padding; empty without padding.
  std::vector<HeatmapFile> files;
};

}  // namespace attn
