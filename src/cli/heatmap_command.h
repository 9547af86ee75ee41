// attn-cli heatmap: where does each head look?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/config_options.h"

namespace attn {

struct HeatmapCommandOptions {
  ConfigOptions config;
  std::optional<std::string> folder;  ///< absent: "heatmaps".
  std::optional<std::string> what;    ///< name of a step; absent: "weights".
  std::vector<std::string> batch;     ///< comma lists, as given.
  std::vector<std::string> head;      ///< comma lists, as given.
};

void add_heatmap_command(CommandLine& line);

/// Throws what load_config(), refuse_if_too_large() and capture_attention_maps() throw; IoError for the folder.
/// Nothing is written before every picture has been drawn.
ExitStatus run_heatmap(const HeatmapCommandOptions& options, Streams& streams);

}  // namespace attn
