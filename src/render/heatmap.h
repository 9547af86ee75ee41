// Matrices to pictures: queries down, keys across, each cell a whole number of pixels, so that nothing is blurred.
// Called by the heatmap command; knows nothing about attention beside the words on the axes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/matrix.h"
#include "render/image.h"

namespace attn {

/// The numbers at the ends of the colour bar, both finite, low < high.
struct ColorScale {
  double low = 0.0;
  double high = 1.0;
};

/// One map and what is written above it.
struct HeatmapPanel {
  const Matrix* values = nullptr;  ///< (T_q, T_k); not owned.
  std::string title;               ///< "head 2", in an overview.
};

/// A map can show kinds in place of numbers.
struct HeatmapCategory {
  Rgb color;
  std::string name;     ///< for the legend.
  bool marked = false;  ///< must not be missed: a frame is drawn round such cells where they are few and tiny.
};

struct HeatmapOptions {
  std::string title;     ///< layer facts, above the picture, wrapped where it is wider.
  std::string subtitle;  ///< below it: what is shown, and its scale.
  ColorScale scale;
  /// Not empty: a cell's value is the number of its category, and a legend of all of them stands in place of the colour
  /// bar.
  std::vector<HeatmapCategory> categories;
  std::vector<bool> visible;              ///< T_q * T_k; empty: all visible.
  std::string hidden_name = "masked";     ///< for the legend: what the cells are that are not visible.
  std::vector<std::string> query_labels;  ///< T_q words. Empty: positions, aligned to the last key: row i of T_q is
                                          ///< position i + (T_k - T_q), or i where there are more queries than keys.
  bool own_query_positions = false;       ///< queries are of another sequence than keys: row i is position i.
  std::vector<std::string> key_labels;    ///< T_k words, or empty for positions from 0.
};

/// How one cell is drawn. In this order: masked when not visible, whatever its value (-inf of masked scores, too);
/// kNanColor; kInfinityColor for an infinity where the query may look; else viridis, values beyond the scale's ends
/// as its ends.
Rgb cell_color(double value, bool visible, const ColorScale& scale);

/// The smallest and largest finite visible value of all panels; {0, 1} when there is none. Equal ends are widened.
ColorScale range_of(const std::vector<HeatmapPanel>& panels, const std::vector<bool>& visible);

/// One map with labels, axes ("query" down, "key" across), colour bar, and a legend of the colours in it that are no
/// value (masked, nan, inf). Labels are thinned to every 2nd, 5th, 10th ... where rows are smaller than letters.
/// Throws as layout_of() in layout.h does.
Image draw_heatmap(const HeatmapPanel& panel, const HeatmapOptions& options);

/// All panels in a grid, row by row, each below its title, with one colour bar and one set of labels. All panels have
/// one shape. Throws as draw_heatmap().
Image draw_overview(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options);

/// A pixel of a picture, from its top left corner.
struct PixelPosition {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

/// Where the cells of a single heatmap are: cell (i, j) is the square with the corner
/// (first_cell.x + j * cell, first_cell.y + i * cell). For whoever reads values back from the picture.
struct CellGrid {
  PixelPosition first_cell;
  std::int64_t cell = 0;
};
CellGrid heatmap_cell_grid(const HeatmapPanel& panel, const HeatmapOptions& options);

}  // namespace attn
