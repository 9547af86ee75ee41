// Matrices to pictures: queries down, keys across, each cell a whole number of pixels, so that nothing is blurred.
// Called by the heatmap command; knows nothing about attention beside the words on the axes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/matrix.h"
#include "render/image.h"

namespace attn {

/// The numbers at the ends of the colour bar.
struct ColorScale {
  double low = 0.0;
  double high = 1.0;
};

/// One map and what is written round it.
struct HeatmapPanel {
  const Matrix* values = nullptr;   ///< (T_q, T_k); not owned.
  std::string title;                ///< above the panel of an overview: "head 2".
};

struct HeatmapOptions {
  std::string title;                         ///< layer facts, first line above the picture.
  std::string subtitle;                      ///< second line: what is shown, and its scale.
  ColorScale scale;
  std::vector<bool> visible;                 ///< T_q * T_k; a cell that is not visible is drawn as masked. Empty: all visible.
  std::vector<std::string> query_labels;     ///< T_q words, or empty for positions. Thinned where there is no room.
  std::vector<std::string> key_labels;       ///< T_k words, or empty for positions.
};

/// The smallest and largest finite visible value of all panels; {0, 1} when there is none. Equal ends are widened.
ColorScale range_of(const std::vector<HeatmapPanel>& panels, const std::vector<bool>& visible);

/// One map with labels, axes ("query" down, "key" across) and colour bar.
Image draw_heatmap(const HeatmapPanel& panel, const HeatmapOptions& options);

/// All panels in a grid with one colour bar. All panels have one shape.
Image draw_overview(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options);

/// Pixels of one cell for a matrix of this size: a whole number of at least 1.
std::int64_t cell_size(std::int64_t rows, std::int64_t cols, bool overview);

/// Where the cell (row, col) of a single heatmap starts, for tests and for index.json.
struct PixelPosition {
  std::int64_t x = 0;
  std::int64_t y = 0;
};
PixelPosition heatmap_cell_origin(const HeatmapPanel& panel, const HeatmapOptions& options, std::int64_t row, std::int64_t col);

}  // namespace attn
