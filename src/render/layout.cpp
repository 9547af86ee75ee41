#include "render/layout.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/error.h"
#include "core/text.h"
#include "render/colormap.h"
#include "render/font.h"

namespace attn {
namespace {

constexpr std::int64_t kSingleMapSide = 720;
constexpr std::int64_t kOverviewWidth = 1600;
constexpr std::int64_t kSmallestPanelSide = 160;
constexpr std::int64_t kLargestCell = 48;
constexpr std::int64_t kPanelGap = 28;
constexpr std::int64_t kBarGap = 24;
constexpr std::int64_t kSmallestBar = 120;
constexpr std::int64_t kBarWithFiveTicks = 200;
constexpr std::int64_t kNarrowestTitle = 600;
constexpr std::int64_t kLabelPitch = 9;     // rows of a capital and of what hangs below it, at zoom 1.
constexpr std::int64_t kThinnedPitch = 12;  // where there is a choice, with some air.

void check_arguments(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options) {
  if (panels.empty()) throw std::invalid_argument("a heatmap without a panel");
  const Matrix& first = *panels.front().values;
  if (first.rows < 1 || first.cols < 1) {
    throw ShapeError("heatmap: a map of shape " + format_shape({first.rows, first.cols}) +
                     " has no cell, expected at least one query and one key");
  }
  const auto rows = static_cast<std::size_t>(first.rows);
  const auto cols = static_cast<std::size_t>(first.cols);
  for (const HeatmapPanel& panel : panels) {
    const Matrix& values = *panel.values;
    if (values.rows != first.rows || values.cols != first.cols || values.values.size() != rows * cols) {
      throw std::invalid_argument("the maps of an overview have several shapes");
    }
  }
  const auto has_length = [](std::size_t length, std::size_t expected) { return length == 0 || length == expected; };
  if (!has_length(options.visible.size(), rows * cols) || !has_length(options.query_labels.size(), rows) ||
      !has_length(options.key_labels.size(), cols)) {
    throw std::invalid_argument("the mask or the labels of a heatmap do not fit its shape");
  }
  const auto count = static_cast<double>(options.categories.size());
  for (const HeatmapPanel& panel : panels) {
    if (options.categories.empty()) break;
    for (const double value : panel.values->values) {
      if (!(value >= 0.0 && value < count)) throw std::invalid_argument("a cell of a heatmap without a category");
    }
  }
  const ColorScale& scale = options.scale;
  if (!std::isfinite(scale.low) || !std::isfinite(scale.high) || !(scale.low < scale.high)) {
    throw std::invalid_argument("a colour scale without a range");
  }
}

std::vector<LegendEntry> legend_of(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options) {
  const std::vector<bool>& visible = options.visible;
  if (!options.categories.empty()) {
    std::vector<LegendEntry> entries;
    for (const HeatmapCategory& category : options.categories) entries.push_back({category.color, category.name});
    return entries;
  }
  bool nan = false;
  bool infinity = false;
  for (const HeatmapPanel& panel : panels) {
    const std::vector<double>& values = panel.values->values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i]) || !(visible.empty() || visible[i])) continue;
      (std::isnan(values[i]) ? nan : infinity) = true;
    }
  }
  std::vector<LegendEntry> legend;
  if (std::find(visible.begin(), visible.end(), false) != visible.end())
    legend.push_back({kMaskedColor, options.hidden_name});
  if (nan) legend.push_back({kNanColor, "nan"});
  if (infinity) legend.push_back({kInfinityColor, "inf"});
  return legend;
}

void place_labels(HeatmapLayout& layout, const HeatmapOptions& options) {
  // Small letters only where they are what it takes to label every row; where labels are thinned anyhow, large ones.
  const bool only_small_fit = layout.cell < kLabelPitch * kTextZoom && layout.cell >= kLabelPitch;
  layout.label_zoom = only_small_fit ? 1 : kTextZoom;
  const std::int64_t pitch = kLabelPitch * layout.label_zoom;
  const std::int64_t step = layout.cell >= pitch ? 1 : label_step(layout.cell, kThinnedPitch * layout.label_zoom);
  const std::int64_t first_query =
      options.own_query_positions ? 0 : std::max<std::int64_t>(layout.cols - layout.rows, 0);
  layout.query_labels = axis_labels(layout.rows, options.query_labels, first_query, step);
  layout.key_labels = axis_labels(layout.cols, options.key_labels, 0, step);
  const std::int64_t widest = widest_label(layout.key_labels, layout.label_zoom);
  layout.keys_upwards = widest + kGlyphWidth * layout.label_zoom > step * layout.cell;
  layout.key_label_height = layout.keys_upwards ? widest : kCapitalRows * layout.label_zoom;
}

std::vector<BarTick> bar_ticks_of(const HeatmapLayout& layout, const ColorScale& scale) {
  const int steps = layout.bar_height >= kBarWithFiveTicks ? 4 : 2;
  std::vector<BarTick> ticks;
  for (int i = 0; i <= steps; ++i) {
    const double share = static_cast<double>(i) / steps;
    const double value = scale.low * (1 - share) + scale.high * share;
    const auto above_foot = static_cast<std::int64_t>(std::lround(share * static_cast<double>(layout.bar_height - 1)));
    ticks.push_back({layout.bar.y + layout.bar_height - 1 - above_foot, format_number(value, 3)});
  }
  return ticks;
}

// The colour bar is as high as the first map with the legend below it; categories have a legend only. Returns the
// pixels that both take across.
std::int64_t place_bar(HeatmapLayout& layout, const HeatmapOptions& options) {
  const auto entries = static_cast<std::int64_t>(layout.legend.size());
  const std::int64_t legend_height = entries == 0 ? 0 : kLineHeight / 2 + entries * kLineHeight;
  layout.legend_y = layout.bar.y;
  if (options.categories.empty()) {
    layout.bar_height = std::max(layout.rows * layout.cell - legend_height, kSmallestBar);
    layout.bar_ticks = bar_ticks_of(layout, options.scale);
    layout.legend_y += layout.bar_height + kLineHeight / 2;
  }
  std::int64_t text = 0;
  for (const BarTick& tick : layout.bar_ticks) text = std::max(text, text_width(tick.text, kTextZoom));
  for (const LegendEntry& entry : layout.legend) text = std::max(text, text_width(entry.text, kTextZoom));
  return kBarWidth + 2 * kLabelGap + text;
}

HeatmapLayout layout_with(std::int64_t panel_columns, const std::vector<HeatmapPanel>& panels,
                          const HeatmapOptions& options, bool overview, const std::vector<LegendEntry>& legend) {
  HeatmapLayout layout;
  layout.rows = panels.front().values->rows;
  layout.cols = panels.front().values->cols;
  layout.panel_columns = panel_columns;
  layout.cell = cell_size(layout.rows, layout.cols, panel_columns);
  layout.legend = legend;
  place_labels(layout, options);

  const auto count = static_cast<std::int64_t>(panels.size());
  const std::int64_t panel_rows = (count + panel_columns - 1) / panel_columns;
  const std::int64_t map_width = layout.cols * layout.cell;
  const std::int64_t map_height = layout.rows * layout.cell;
  std::int64_t panel_width = map_width;
  if (overview) {
    for (const HeatmapPanel& panel : panels) panel_width = std::max(panel_width, text_width(panel.title, kTextZoom));
  }
  const std::int64_t panel_title = overview ? kLineHeight : 0;
  layout.stride_x = panel_width + kPanelGap;
  layout.stride_y = map_height + panel_title + kPanelGap;

  const std::int64_t left = std::max(widest_label(layout.query_labels, layout.label_zoom) + kLabelGap,
                                     text_width(kQueryAxis, kTextZoom) + kCornerGap);
  layout.first_map.x = kMargin + left;
  layout.bar.x = layout.first_map.x + (panel_columns - 1) * layout.stride_x + panel_width + kBarGap;
  const std::int64_t bar_across = place_bar(layout, options);

  const std::int64_t content = layout.bar.x + bar_across - kMargin;
  const std::int64_t title_width = std::max(
      content, std::min(kNarrowestTitle,
                        std::max(text_width(options.title, kTextZoom), text_width(options.subtitle, kTextZoom))));
  const std::int64_t characters = (title_width / kTextZoom + 1) / kGlyphWidth;
  layout.title_lines = wrapped_lines(options.title, characters);
  layout.subtitle_lines = wrapped_lines(options.subtitle, characters);
  const auto lines = static_cast<std::int64_t>(layout.title_lines.size() + layout.subtitle_lines.size());

  layout.head_height = std::max(layout.key_label_height + kLabelGap + panel_title, kCornerHeight);
  layout.first_map.y = kMargin + lines * kLineHeight + kLineHeight / 2 + layout.head_height;
  layout.bar.y = layout.first_map.y;
  place_bar(layout, options);
  const auto entries = static_cast<std::int64_t>(layout.legend.size());
  const std::int64_t maps_end = layout.first_map.y + (panel_rows - 1) * layout.stride_y + map_height;
  layout.width = title_width + 2 * kMargin;
  layout.height = std::max(maps_end, layout.legend_y + entries * kLineHeight) + kMargin;
  return layout;
}

}  // namespace

PixelPosition HeatmapLayout::cell_origin(std::int64_t panel, std::int64_t row, std::int64_t col) const {
  return {first_map.x + panel % panel_columns * stride_x + col * cell,
          first_map.y + panel / panel_columns * stride_y + row * cell};
}

std::int64_t grid_columns(std::int64_t panels) {
  const auto square = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(panels))));
  for (std::int64_t columns = square; columns * columns <= 3 * panels; ++columns) {
    if (panels % columns == 0) return columns;
  }
  return square;
}

std::int64_t cell_size(std::int64_t rows, std::int64_t cols, std::int64_t panel_columns) {
  const std::int64_t side =
      panel_columns == 1 ? kSingleMapSide : std::max(kOverviewWidth / panel_columns, kSmallestPanelSide);
  return std::clamp<std::int64_t>(side / std::max(rows, cols), 1, kLargestCell);
}

HeatmapLayout layout_of(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options, bool overview) {
  check_arguments(panels, options);
  const auto count = static_cast<std::int64_t>(panels.size());
  const std::vector<LegendEntry> legend = legend_of(panels, options);
  HeatmapLayout layout = layout_with(grid_columns(count), panels, options, overview, legend);
  while (layout.width > kMaxImageSide && layout.panel_columns > 1) {
    layout = layout_with(layout.panel_columns - 1, panels, options, overview, legend);
  }
  if (std::max(layout.width, layout.height) > kMaxImageSide) {
    const bool single = count == 1;
    throw ConfigError("heatmap: " + std::to_string(count) + (single ? " map of " : " maps of ") +
                      std::to_string(layout.rows) + " x " + std::to_string(layout.cols) +
                      (single ? " cells needs" : " cells need") + " a picture of " + std::to_string(layout.width) +
                      " x " + std::to_string(layout.height) + " pixels, expected at most " +
                      std::to_string(kMaxImageSide) + " a side" + (single ? "" : "; choose fewer heads with --head"));
  }
  return layout;
}

}  // namespace attn
