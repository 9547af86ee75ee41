#include "render/heatmap.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "render/colormap.h"
#include "render/font.h"
#include "render/layout.h"

namespace attn {
namespace {

constexpr Rgb kPaper{255, 255, 255};
constexpr Rgb kInk{32, 32, 36};
constexpr Rgb kFaintInk{104, 104, 112};
constexpr Rgb kFrame{150, 150, 156};
constexpr std::int64_t kSmallestHatchedCell = 8;
constexpr std::int64_t kHatchDistance = 8;
constexpr std::int64_t kTickLength = 4;
constexpr std::int64_t kLargestTinyCell = 6;  ///< a marked cell of this side or less may be overlooked.
constexpr std::int64_t kMostRings = 64;       ///< more of them would hide the map; so many cells are seen without.
constexpr std::int64_t kRingDistance = 5;
constexpr std::int64_t kRingWidth = 2;

// Values that may not be looked at, or all of them where nothing is masked.
bool is_visible(const std::vector<bool>& visible, std::int64_t index) {
  return visible.empty() || visible[static_cast<std::size_t>(index)];
}

void frame(Image& image, PixelPosition corner, std::int64_t width, std::int64_t height) {
  image.fill_rectangle(corner.x - 1, corner.y - 1, width + 2, 1, kFrame);
  image.fill_rectangle(corner.x - 1, corner.y + height, width + 2, 1, kFrame);
  image.fill_rectangle(corner.x - 1, corner.y - 1, 1, height + 2, kFrame);
  image.fill_rectangle(corner.x + width, corner.y - 1, 1, height + 2, kFrame);
}

// The lines run on from cell to cell.
void fill_masked(Image& image, PixelPosition corner, std::int64_t side) {
  image.fill_rectangle(corner.x, corner.y, side, side, kMaskedColor);
  if (side < kSmallestHatchedCell) return;
  for (std::int64_t y = corner.y; y < corner.y + side; ++y) {
    for (std::int64_t x = corner.x; x < corner.x + side; ++x) {
      if ((x + y) % kHatchDistance == 0) image.at(x, y) = kMaskedHatchColor;
    }
  }
}

// A square frame with a cell in its middle.
void paint_ring(Image& image, PixelPosition corner, std::int64_t cell, Rgb color) {
  const std::int64_t reach = kRingDistance + kRingWidth;
  const std::int64_t side = cell + 2 * reach;
  const std::int64_t left = corner.x - reach;
  const std::int64_t top = corner.y - reach;
  image.fill_rectangle(left, top, side, kRingWidth, color);
  image.fill_rectangle(left, top + side - kRingWidth, side, kRingWidth, color);
  image.fill_rectangle(left, top, kRingWidth, side, color);
  image.fill_rectangle(left + side - kRingWidth, top, kRingWidth, side, color);
}

// Few tiny marked cells get a frame round each; the cells themselves keep their size and place.
void paint_rings(Image& image, const HeatmapLayout& layout, std::int64_t panel, const Matrix& values,
                 const std::vector<HeatmapCategory>& categories) {
  if (categories.empty() || layout.cell > kLargestTinyCell) return;
  std::vector<std::pair<PixelPosition, Rgb>> rings;
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t col = 0; col < layout.cols; ++col) {
      const HeatmapCategory& category = categories[static_cast<std::size_t>(values.at(row, col))];
      if (!category.marked) continue;
      if (std::ssize(rings) == kMostRings) return;
      rings.emplace_back(layout.cell_origin(panel, row, col), category.color);
    }
  }
  for (const auto& [corner, color] : rings) paint_ring(image, corner, layout.cell, color);
}

void paint_map(Image& image, const HeatmapLayout& layout, std::int64_t index, const Matrix& values,
               const HeatmapOptions& options) {
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t col = 0; col < layout.cols; ++col) {
      const PixelPosition corner = layout.cell_origin(index, row, col);
      if (!options.categories.empty()) {
        const auto category = static_cast<std::size_t>(values.at(row, col));
        image.fill_rectangle(corner.x, corner.y, layout.cell, layout.cell, options.categories[category].color);
      } else if (is_visible(options.visible, row * layout.cols + col)) {
        image.fill_rectangle(corner.x, corner.y, layout.cell, layout.cell,
                             cell_color(values.at(row, col), true, options.scale));
      } else {
        fill_masked(image, corner, layout.cell);
      }
    }
  }
  frame(image, layout.cell_origin(index, 0, 0), layout.cols * layout.cell, layout.rows * layout.cell);
  paint_rings(image, layout, index, values, options.categories);
}

// Text whose capitals are centred on the row y.
void draw_text_at_row(Image& image, std::int64_t x, std::int64_t y, const std::string& text, Rgb color,
                      std::int64_t zoom) {
  draw_text(image, x, y - kAccentRows * zoom - kCapitalRows * zoom / 2, text, color, zoom);
}

void paint_query_labels(Image& image, const HeatmapLayout& layout, std::int64_t panel) {
  const bool thinned = layout.query_labels.size() < static_cast<std::size_t>(layout.rows);
  for (const AxisLabel& label : layout.query_labels) {
    const PixelPosition corner = layout.cell_origin(panel, label.index, 0);
    const std::int64_t middle = corner.y + layout.cell / 2;
    const std::int64_t right = corner.x - kLabelGap;
    draw_text_at_row(image, right - text_width(label.text, layout.label_zoom), middle, label.text, kInk,
                     layout.label_zoom);
    if (thinned) image.fill_rectangle(corner.x - 1 - kTickLength, middle, kTickLength, 1, kFrame);
  }
}

void paint_key_labels(Image& image, const HeatmapLayout& layout, std::int64_t panel) {
  const std::int64_t zoom = layout.label_zoom;
  const bool thinned = layout.key_labels.size() < static_cast<std::size_t>(layout.cols);
  for (const AxisLabel& label : layout.key_labels) {
    const PixelPosition corner = layout.cell_origin(panel, 0, label.index);
    const std::int64_t middle = corner.x + layout.cell / 2;
    const std::int64_t foot = corner.y - kLabelGap;
    if (layout.keys_upwards) {
      draw_text_upwards(image, middle - kAccentRows * zoom - kCapitalRows * zoom / 2, foot, label.text, kInk, zoom);
    } else {
      draw_text_at_row(image, middle - text_width(label.text, zoom) / 2, foot - (kCapitalRows * zoom + 1) / 2,
                       label.text, kInk, zoom);
    }
    if (thinned) image.fill_rectangle(middle, corner.y - 1 - kTickLength, 1, kTickLength, kFrame);
  }
}

// Both in the corner above the query labels, each beside the labels that it names.
void paint_axis_names(Image& image, const HeatmapLayout& layout) {
  const std::int64_t right = layout.first_map.x - kCornerGap;
  std::int64_t y = layout.first_map.y - kCornerHeight;
  for (const std::string name : {kKeyAxis, kQueryAxis}) {
    draw_text(image, right - text_width(name, kTextZoom), y, name, kFaintInk, kTextZoom);
    y += kLineHeight;
  }
}

void paint_bar(Image& image, const HeatmapLayout& layout) {
  const std::int64_t text_x = layout.bar.x + kBarWidth + 2 * kLabelGap;
  for (std::int64_t y = 0; y < layout.bar_height; ++y) {
    const double share = 1.0 - (static_cast<double>(y) + 0.5) / static_cast<double>(layout.bar_height);
    image.fill_rectangle(layout.bar.x, layout.bar.y + y, kBarWidth, 1, viridis(share));
  }
  if (layout.bar_height > 0) frame(image, layout.bar, kBarWidth, layout.bar_height);
  for (const BarTick& tick : layout.bar_ticks) {
    image.fill_rectangle(layout.bar.x + kBarWidth + 1, tick.y, kTickLength, 1, kFrame);
    draw_text_at_row(image, text_x, tick.y, tick.text, kInk, kTextZoom);
  }
  std::int64_t y = layout.legend_y;
  for (const LegendEntry& entry : layout.legend) {
    if (entry.color == kMaskedColor) {
      fill_masked(image, {layout.bar.x, y}, kBarWidth);
    } else {
      image.fill_rectangle(layout.bar.x, y, kBarWidth, kBarWidth, entry.color);
    }
    frame(image, {layout.bar.x, y}, kBarWidth, kBarWidth);
    draw_text_at_row(image, text_x, y + kBarWidth / 2, entry.text, kInk, kTextZoom);
    y += kLineHeight;
  }
}

Image paint(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options, bool overview) {
  const HeatmapLayout layout = layout_of(panels, options, overview);
  Image image(layout.width, layout.height, kPaper);
  std::int64_t y = kMargin;
  for (const std::string& line : layout.title_lines) {
    draw_text(image, kMargin, y, line, kInk, kTextZoom);
    y += kLineHeight;
  }
  for (const std::string& line : layout.subtitle_lines) {
    draw_text(image, kMargin, y, line, kFaintInk, kTextZoom);
    y += kLineHeight;
  }
  paint_axis_names(image, layout);
  paint_bar(image, layout);
  const auto count = static_cast<std::int64_t>(panels.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const HeatmapPanel& panel = panels[static_cast<std::size_t>(i)];
    paint_map(image, layout, i, *panel.values, options);
    if (i < layout.panel_columns) paint_key_labels(image, layout, i);
    if (i % layout.panel_columns == 0) paint_query_labels(image, layout, i);
    if (overview) {
      const PixelPosition corner = layout.cell_origin(i, 0, 0);
      const std::int64_t above = i < layout.panel_columns ? layout.head_height : kLineHeight;
      draw_text(image, corner.x, corner.y - above, panel.title, kInk, kTextZoom);
    }
  }
  return image;
}

}  // namespace

Rgb cell_color(double value, bool visible, const ColorScale& scale) {
  if (!visible) return kMaskedColor;
  if (std::isnan(value)) return kNanColor;
  if (std::isinf(value)) return kInfinityColor;
  const double range = scale.high - scale.low;
  if (std::isfinite(range)) return viridis((value - scale.low) / range);
  return viridis((value / 2 - scale.low / 2) / (scale.high / 2 - scale.low / 2));  // ends near the largest doubles.
}

ColorScale range_of(const std::vector<HeatmapPanel>& panels, const std::vector<bool>& visible) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const HeatmapPanel& panel : panels) {
    const std::vector<double>& values = panel.values->values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!is_visible(visible, static_cast<std::int64_t>(i)) || !std::isfinite(values[i])) continue;
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
  }
  if (low > high) return {};
  if (low < high) return {low, high};
  const double margin = std::max(0.5, std::abs(low) / 8);
  return {low - margin, high + margin};
}

Image draw_heatmap(const HeatmapPanel& panel, const HeatmapOptions& options) { return paint({panel}, options, false); }

Image draw_overview(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options) {
  return paint(panels, options, true);
}

CellGrid heatmap_cell_grid(const HeatmapPanel& panel, const HeatmapOptions& options) {
  const HeatmapLayout layout = layout_of({panel}, options, false);
  return {layout.first_map, layout.cell};
}

}  // namespace attn
