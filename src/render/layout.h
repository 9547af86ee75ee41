// Where everything in a heatmap stands, in pixels. Computed once, then painted by heatmap.cpp; tests read it instead of
// recognising letters. A single heatmap is a grid of one panel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "render/axis.h"
#include "render/heatmap.h"

namespace attn {

/// Margins, gaps and sizes that do not depend on the map.
inline constexpr std::int64_t kTextZoom = 2;     ///< of titles, axis names and the colour bar.
inline constexpr std::int64_t kMargin = 20;      ///< round the whole picture.
inline constexpr std::int64_t kLineHeight = 28;  ///< of a line of text at kTextZoom.
inline constexpr std::int64_t kLabelGap = 6;     ///< between a label and its cells.
inline constexpr std::int64_t kBarWidth = 20;    ///< of the colour bar.

/// What stands at the axes.
inline constexpr const char* kQueryAxis = "query ↓";
inline constexpr const char* kKeyAxis = "key →";

/// They stand in the corner left of the first map's head, clear of the labels of its first row and column.
inline constexpr std::int64_t kCornerGap = 16;
inline constexpr std::int64_t kCornerHeight = 2 * kLineHeight + 8;

/// A colour beside the bar that is no value: "masked", "nan", "inf".
struct LegendEntry {
  Rgb color;
  std::string text;
};

/// A number beside the colour bar.
struct BarTick {
  std::int64_t y = 0;
  std::string text;
};

struct HeatmapLayout {
  std::int64_t width = 0;
  std::int64_t height = 0;

  std::int64_t rows = 0;           ///< cells of a map, down.
  std::int64_t cols = 0;           ///< cells of a map, across.
  std::int64_t cell = 0;           ///< pixels of a cell's side.
  std::int64_t panel_columns = 0;  ///< maps beside each other.
  PixelPosition first_map;         ///< the first cell of the first map.
  std::int64_t stride_x = 0;       ///< from one map to the next, across.
  std::int64_t stride_y = 0;       ///< and down.

  std::vector<std::string> title_lines;
  std::vector<std::string> subtitle_lines;

  std::int64_t label_zoom = 0;
  std::vector<AxisLabel> query_labels;  ///< left of the leftmost maps.
  std::vector<AxisLabel> key_labels;    ///< above the topmost maps.
  bool keys_upwards = false;            ///< the key labels are turned by a quarter.
  std::int64_t key_label_height = 0;    ///< pixels they take above the maps.
  std::int64_t head_height = 0;  ///< pixels that labels, axis names and panel titles take above the topmost maps.

  PixelPosition bar;
  std::int64_t bar_height = 0;  ///< 0: no bar, the legend stands in its place.
  std::vector<BarTick> bar_ticks;
  std::vector<LegendEntry> legend;
  std::int64_t legend_y = 0;

  /// Where the cell (row, col) of a panel starts.
  PixelPosition cell_origin(std::int64_t panel, std::int64_t row, std::int64_t col) const;
};

/// How many panels stand beside each other: about a square, without gaps at the end where a number near it divides.
std::int64_t grid_columns(std::int64_t panels);

/// Pixels of one cell: a whole number of at least 1, the same across and down.
std::int64_t cell_size(std::int64_t rows, std::int64_t cols, std::int64_t panel_columns);

/// Throws ShapeError for maps with no cell, ConfigError when the picture would have a side over kMaxImageSide.
/// std::invalid_argument, the caller's fault: panels of several shapes, words or `visible` of another length, a value
/// that is no category.
HeatmapLayout layout_of(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options, bool overview);

}  // namespace attn
