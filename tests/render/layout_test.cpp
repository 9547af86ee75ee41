#include "render/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/error.h"
#include "render/colormap.h"
#include "render/font.h"

namespace attn {
namespace {

Matrix zeros(std::int64_t rows, std::int64_t cols) {
  return {rows, cols, std::vector<double>(static_cast<std::size_t>(rows * cols))};
}

std::vector<HeatmapPanel> heads_of(const Matrix& values, std::int64_t heads) {
  std::vector<HeatmapPanel> panels;
  for (std::int64_t head = 0; head < heads; ++head) panels.push_back({&values, "head " + std::to_string(head)});
  return panels;
}

HeatmapLayout single_layout(std::int64_t rows, std::int64_t cols, const HeatmapOptions& options = {}) {
  const Matrix values = zeros(rows, cols);
  return layout_of({{&values, ""}}, options, false);
}

std::vector<std::string> texts_of(const std::vector<AxisLabel>& labels) {
  std::vector<std::string> texts;
  for (const AxisLabel& label : labels) texts.push_back(label.text);
  return texts;
}

std::vector<std::string> legend_texts(const Matrix& values, const std::vector<bool>& visible) {
  HeatmapOptions options;
  options.visible = visible;
  std::vector<std::string> texts;
  for (const LegendEntry& entry : layout_of({{&values, ""}}, options, false).legend) texts.push_back(entry.text);
  return texts;
}

template <typename Refusal>
std::string refusal_text(const std::vector<HeatmapPanel>& panels, const HeatmapOptions& options = {}) {
  try {
    layout_of(panels, options, panels.size() > 1);
  } catch (const Refusal& error) {
    return error.what();
  }
  return "no error";
}

TEST(CellSize, ShrinksWithTheMapButNeverBelowOnePixel) {
  EXPECT_EQ(cell_size(1, 1, 1), 48);
  EXPECT_EQ(cell_size(8, 8, 1), 48);
  EXPECT_EQ(cell_size(21, 21, 1), 34);
  EXPECT_EQ(cell_size(2, 21, 1), 34);
  EXPECT_EQ(cell_size(300, 300, 1), 2);
  EXPECT_EQ(cell_size(4096, 4096, 1), 1);
  EXPECT_EQ(cell_size(21, 21, 4), 19);
  EXPECT_EQ(cell_size(1024, 1024, 4), 1);
}

TEST(GridColumns, MakeAboutASquareWithoutGapsWhereTheyCan) {
  EXPECT_EQ(grid_columns(1), 1);
  EXPECT_EQ(grid_columns(2), 2);
  EXPECT_EQ(grid_columns(3), 3);
  EXPECT_EQ(grid_columns(4), 2);
  EXPECT_EQ(grid_columns(5), 3);
  EXPECT_EQ(grid_columns(8), 4);
  EXPECT_EQ(grid_columns(12), 4);
  EXPECT_EQ(grid_columns(64), 8);
}

TEST(Layout, LabelsEveryRowAndColumnWhereThereIsRoom) {
  const HeatmapLayout layout = single_layout(3, 3);
  EXPECT_EQ(texts_of(layout.query_labels), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(texts_of(layout.key_labels), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_FALSE(layout.keys_upwards);
}

// With earlier keys in a cache, the first query is not position 0.
TEST(Layout, AlignsTheLastQueryWithTheLastKey) {
  const HeatmapLayout layout = single_layout(2, 5);
  EXPECT_EQ(texts_of(layout.query_labels), (std::vector<std::string>{"3", "4"}));
  EXPECT_EQ(texts_of(layout.key_labels), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
}

TEST(Layout, CountsQueriesOfAnotherSequenceFromZero) {
  HeatmapOptions options;
  options.own_query_positions = true;
  EXPECT_EQ(texts_of(single_layout(2, 5, options).query_labels), (std::vector<std::string>{"0", "1"}));
}

TEST(Layout, NamesWhatHiddenCellsAre) {
  HeatmapOptions options;
  options.visible = {true, false};
  options.hidden_name = "masked or padding";
  const Matrix values = zeros(1, 2);
  const HeatmapLayout layout = layout_of({{&values, ""}}, options, false);
  ASSERT_EQ(layout.legend.size(), 1U);
  EXPECT_EQ(layout.legend[0].text, "masked or padding");
}

TEST(Layout, CountsQueriesFromZeroWhereThereAreMoreThanKeys) {
  EXPECT_EQ(texts_of(single_layout(3, 2).query_labels), (std::vector<std::string>{"0", "1", "2"}));
}

TEST(Layout, ShowsAll21TokensOfASentence) {
  HeatmapOptions options;
  for (int i = 0; i < 21; ++i) options.query_labels.push_back("token" + std::to_string(i));
  options.key_labels = options.query_labels;
  const Matrix values = zeros(21, 21);
  for (const std::int64_t heads : {1, 4, 12, 64}) {
    const HeatmapLayout layout = layout_of(heads_of(values, heads), options, true);
    EXPECT_EQ(texts_of(layout.query_labels), options.query_labels) << heads;
    EXPECT_EQ(texts_of(layout.key_labels), options.key_labels) << heads;
    EXPECT_TRUE(layout.keys_upwards);
  }
}

TEST(Layout, ThinsLabelsOfRowsSmallerThanLetters) {
  const HeatmapLayout layout = single_layout(1024, 1024);
  EXPECT_EQ(layout.cell, 1);
  ASSERT_EQ(layout.query_labels.size(), 21U);
  EXPECT_EQ(layout.query_labels[3].index, 150);
  EXPECT_EQ(layout.query_labels[3].text, "150");
}

TEST(Layout, NamesThePositionsOfTheColourBar) {
  HeatmapOptions options;
  options.scale = {-1.0, 3.0};
  const HeatmapLayout layout = single_layout(21, 21, options);
  ASSERT_EQ(layout.bar_ticks.size(), 5U);
  EXPECT_EQ(layout.bar_ticks[0].text, "-1");
  EXPECT_EQ(layout.bar_ticks[1].text, "0");
  EXPECT_EQ(layout.bar_ticks[2].text, "1");
  EXPECT_EQ(layout.bar_ticks[4].text, "3");
  EXPECT_EQ(layout.bar_ticks[0].y, layout.bar.y + layout.bar_height - 1);
  EXPECT_EQ(layout.bar_ticks[4].y, layout.bar.y);
  EXPECT_EQ(single_layout(1, 1).bar_ticks.size(), 3U);
}

TEST(Layout, ExplainsOnlyTheColoursThatAreThere) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  using Texts = std::vector<std::string>;
  EXPECT_EQ(legend_texts({1, 2, {0.0, 1.0}}, {}), Texts{});
  EXPECT_EQ(legend_texts({1, 2, {0.0, 1.0}}, {true, true}), Texts{});
  EXPECT_EQ(legend_texts({1, 2, {0.0, 1.0}}, {true, false}), (Texts{"masked"}));
  EXPECT_EQ(legend_texts({1, 2, {0.0, -infinity}}, {true, false}), (Texts{"masked"}));
  EXPECT_EQ(legend_texts({1, 2, {0.0, -infinity}}, {true, true}), (Texts{"inf"}));
  EXPECT_EQ(legend_texts({1, 2, {nan, 1.0}}, {}), (Texts{"nan"}));
  EXPECT_EQ(legend_texts({1, 3, {nan, 1.0, infinity}}, {true, false, true}), (Texts{"masked", "nan", "inf"}));
}

RC_GTEST_PROP(Layout, HoldsEverythingInsideThePicture, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 200);
  const auto cols = *rc::gen::inRange<std::int64_t>(1, 200);
  const auto heads = *rc::gen::inRange<std::int64_t>(1, 20);
  HeatmapOptions options;
  options.title = std::string(*rc::gen::inRange<std::size_t>(0, 300), 'x');
  options.subtitle = "weights, scale 0 to 1";
  options.visible.assign(static_cast<std::size_t>(rows * cols), false);
  if (*rc::gen::arbitrary<bool>()) options.query_labels.assign(static_cast<std::size_t>(rows), "a_rather_long_word");
  if (*rc::gen::arbitrary<bool>()) options.key_labels.assign(static_cast<std::size_t>(cols), "a_rather_long_word");
  const Matrix values = zeros(rows, cols);
  const HeatmapLayout layout = layout_of(heads_of(values, heads), options, true);

  RC_ASSERT(layout.width <= kMaxImageSide && layout.height <= kMaxImageSide);
  for (std::int64_t panel = 0; panel < heads; ++panel) {
    const PixelPosition last = layout.cell_origin(panel, rows - 1, cols - 1);
    RC_ASSERT(last.x + layout.cell + kMargin <= layout.width);
    RC_ASSERT(last.y + layout.cell + kMargin <= layout.height);
    RC_ASSERT(last.x + layout.cell < layout.bar.x);
  }
  const std::int64_t map_x = layout.first_map.x;
  RC_ASSERT(map_x - kLabelGap - widest_label(layout.query_labels, layout.label_zoom) >= kMargin);
  RC_ASSERT(map_x - kCornerGap - text_width(kQueryAxis, kTextZoom) >= kMargin);
  const auto lines = static_cast<std::int64_t>(layout.title_lines.size() + layout.subtitle_lines.size());
  RC_ASSERT(layout.first_map.y - layout.head_height >= kMargin + lines * kLineHeight);
  RC_ASSERT(layout.head_height >= kLineHeight + layout.key_label_height + kLabelGap);
  for (const std::string& line : layout.title_lines) {
    RC_ASSERT(kMargin + text_width(line, kTextZoom) + kMargin <= layout.width);
  }
  RC_ASSERT(layout.legend_y >= layout.bar.y + layout.bar_height);
  RC_ASSERT(layout.legend_y + kLineHeight <= layout.height);
  for (const BarTick& tick : layout.bar_ticks) {
    RC_ASSERT(layout.bar.x + kBarWidth + 2 * kLabelGap + text_width(tick.text, kTextZoom) + kMargin <= layout.width);
  }
}

RC_GTEST_PROP(Layout, KeepsPanelsApart, ()) {
  const auto side = *rc::gen::inRange<std::int64_t>(1, 100);
  const auto heads = *rc::gen::inRange<std::int64_t>(2, 30);
  const Matrix values = zeros(side, side);
  const HeatmapLayout layout = layout_of(heads_of(values, heads), {}, true);
  RC_ASSERT(layout.stride_x > side * layout.cell);
  RC_ASSERT(layout.stride_x > text_width("head " + std::to_string(heads - 1), kTextZoom));
  RC_ASSERT(layout.stride_y > side * layout.cell + kLineHeight);
}

TEST(Layout, LeavesRoomForPanelTitlesWiderThanTheirMaps) {
  const Matrix values = zeros(1, 1);
  const HeatmapLayout layout = layout_of(heads_of(values, 12), {}, true);
  EXPECT_GT(text_width("head 11", kTextZoom), layout.cell);
  EXPECT_GT(layout.stride_x, text_width("head 11", kTextZoom) + kGlyphWidth);
  EXPECT_GT(layout.bar.x, layout.cell_origin(3, 0, 0).x + text_width("head 11", kTextZoom));
}

TEST(Layout, PutsFewerPanelsBesideEachOtherWhereTheyWouldBeTooWide) {
  const Matrix values = zeros(10, 7000);
  const HeatmapLayout layout = layout_of(heads_of(values, 9), {}, true);
  EXPECT_EQ(layout.panel_columns, 2);
  EXPECT_LE(layout.width, kMaxImageSide);
}

TEST(Layout, RefusesAPictureLargerThanAViewerOpens) {
  const Matrix values = zeros(9000, 10);
  const std::string text = refusal_text<ConfigError>(heads_of(values, 12));
  EXPECT_EQ(text.find("heatmap: 12 maps of 9000 x 10 cells need a picture of "), 0U) << text;
  EXPECT_NE(text.find(" pixels, expected at most 16384 a side; choose fewer heads with --head"), std::string::npos)
      << text;
  EXPECT_EQ(refusal_text<ConfigError>({{&values, ""}}), "no error");
}

TEST(Layout, RefusesASingleMapThatIsTooLargeWithoutTalkOfHeads) {
  const Matrix values = zeros(2, 16384);
  const std::string text = refusal_text<ConfigError>({{&values, ""}});
  EXPECT_NE(text.find("1 map of 2 x 16384 cells needs a picture of"), std::string::npos) << text;
  EXPECT_EQ(text.find("--head"), std::string::npos) << text;
}

TEST(Layout, RefusesAMapWithoutCells) {
  const Matrix values = zeros(0, 5);
  EXPECT_EQ(refusal_text<ShapeError>({{&values, ""}}),
            "heatmap: a map of shape (0, 5) has no cell, expected at least one query and one key");
}

TEST(Layout, CallsItItsCallersFaultWhenThePartsDoNotFit) {
  const Matrix values = zeros(2, 3);
  const Matrix other = zeros(3, 2);
  const auto is_refused = [&](const HeatmapOptions& options) {
    return refusal_text<std::invalid_argument>({{&values, ""}}, options) != "no error";
  };
  HeatmapOptions options;
  EXPECT_FALSE(is_refused(options));
  options.visible.assign(5, true);
  EXPECT_TRUE(is_refused(options));
  options = {};
  options.query_labels = {"a", "b", "c"};
  EXPECT_TRUE(is_refused(options));
  options = {};
  options.key_labels = {"a", "b"};
  EXPECT_TRUE(is_refused(options));
  for (const ColorScale scale : {ColorScale{1.0, 1.0}, {2.0, 1.0}, {0.0, std::nan("")}, {-INFINITY, 0.0}}) {
    options = {};
    options.scale = scale;
    EXPECT_TRUE(is_refused(options)) << scale.low << ' ' << scale.high;
  }
  EXPECT_NE(refusal_text<std::invalid_argument>({{&values, ""}, {&other, ""}}), "no error");
  EXPECT_NE(refusal_text<std::invalid_argument>({}), "no error");
}

}  // namespace
}  // namespace attn
