#include "render/heatmap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "render/colormap.h"
#include "render/layout.h"
#include "render/png.h"
#include "support/png_decoder.h"

namespace attn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

std::vector<bool> causal_mask(std::int64_t length) {
  std::vector<bool> visible;
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) visible.push_back(j <= i);
  }
  return visible;
}

// The pixels of one cell, as libpng reads them from the file's bytes.
std::vector<Rgb> cell_pixels(const Image& picture, PixelPosition corner, std::int64_t side) {
  std::vector<Rgb> pixels;
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) pixels.push_back(picture.at(corner.x + x, corner.y + y));
  }
  return pixels;
}

bool all_are(const std::vector<Rgb>& pixels, Rgb color) {
  return std::all_of(pixels.begin(), pixels.end(), [&](Rgb pixel) { return pixel == color; });
}

bool look_masked(const std::vector<Rgb>& pixels) {
  return pixels.front() != kNanColor && std::all_of(pixels.begin(), pixels.end(), [](Rgb pixel) {
           return pixel == kMaskedColor || pixel == kMaskedHatchColor;
         });
}

std::int64_t count_color(const Image& picture, Rgb color) {
  return std::count(picture.pixels.begin(), picture.pixels.end(), color);
}

// A picture, read back, and where its cells are.
struct Picture {
  Image image;
  CellGrid grid;

  std::vector<Rgb> cell(std::int64_t row, std::int64_t col) const {
    return cell_pixels(image, {grid.first_cell.x + col * grid.cell, grid.first_cell.y + row * grid.cell}, grid.cell);
  }
};

Picture picture_of(const Matrix& values, const HeatmapOptions& options) {
  return {decode_png(encode_png(draw_heatmap({&values, ""}, options))), heatmap_cell_grid({&values, ""}, options)};
}

// All scores equal, three tokens: row i holds 1 / (i + 1) for each key up to i.
TEST(Heatmap, ShowsQueriesDownAndKeysAcross) {
  const Matrix weights{3, 3, {1, 0, 0, 1. / 2, 1. / 2, 0, 1. / 3, 1. / 3, 1. / 3}};
  HeatmapOptions options;
  options.visible = causal_mask(3);
  const Picture picture = picture_of(weights, options);
  EXPECT_EQ(picture.grid.cell, 48);
  EXPECT_TRUE(all_are(picture.cell(0, 0), {0xfd, 0xe7, 0x25}));
  EXPECT_TRUE(all_are(picture.cell(1, 0), {0x21, 0x91, 0x8c}));
  EXPECT_TRUE(all_are(picture.cell(2, 0), viridis(1. / 3)));
  EXPECT_TRUE(all_are(picture.cell(2, 2), viridis(1. / 3)));
  EXPECT_TRUE(look_masked(picture.cell(0, 1)));
  EXPECT_TRUE(look_masked(picture.cell(0, 2)));
  EXPECT_TRUE(look_masked(picture.cell(1, 2)));
}

TEST(Heatmap, TellsAMaskedCellFromAWeightOfZero) {
  const Matrix weights{1, 2, {0, 0}};
  HeatmapOptions options;
  options.visible = {true, false};
  const Picture picture = picture_of(weights, options);
  EXPECT_TRUE(all_are(picture.cell(0, 0), {0x44, 0x01, 0x54}));
  EXPECT_TRUE(look_masked(picture.cell(0, 1)));
}

RC_GTEST_PROP(Heatmap, EveryCellIsASolidBlockOfItsColour, ()) {
  Matrix values{*rc::gen::inRange<std::int64_t>(1, 24), *rc::gen::inRange<std::int64_t>(1, 24), {}};
  HeatmapOptions options;
  options.scale = {-2.0, 3.0};
  for (std::int64_t i = 0; i < values.rows * values.cols; ++i) {
    values.values.push_back(*rc::gen::inRange(-300, 400) / 100.0);
    options.visible.push_back(*rc::gen::inRange(0, 4) > 0);
  }
  const Picture picture = picture_of(values, options);
  for (std::int64_t row = 0; row < values.rows; ++row) {
    for (std::int64_t col = 0; col < values.cols; ++col) {
      const std::vector<Rgb> pixels = picture.cell(row, col);
      if (options.visible[static_cast<std::size_t>(row * values.cols + col)]) {
        RC_ASSERT(all_are(pixels, viridis((values.at(row, col) + 2.0) / 5.0)));
      } else {
        RC_ASSERT(look_masked(pixels));
      }
    }
  }
}

TEST(Heatmap, ShowsEveryCellOfAMapWithOnePixelACell) {
  Matrix values{900, 900, std::vector<double>(900 * 900, 0.25)};
  values.at(899, 7) = 1.0;
  const Picture picture = picture_of(values, {});
  EXPECT_EQ(picture.grid.cell, 1);
  EXPECT_EQ(picture.cell(899, 7), std::vector<Rgb>{viridis(1.0)});
  EXPECT_EQ(picture.cell(899, 8), std::vector<Rgb>{viridis(0.25)});
  EXPECT_EQ(picture.cell(7, 899), std::vector<Rgb>{viridis(0.25)});
}

TEST(Heatmap, Draws4096Tokens) {
  const Matrix values{4096, 4096, std::vector<double>(std::size_t{4096} * 4096, 0.5)};
  const Image image = draw_heatmap({&values, ""}, {});
  EXPECT_GE(count_color(image, viridis(0.5)), 4096 * 4096);
}

TEST(Heatmap, RaisesTheAlarmForNanAndInfinityOnlyWhereTheQueryMayLook) {
  const Matrix scores{2, 3, {kNan, kInfinity, -kInfinity, kNan, kInfinity, -kInfinity}};
  HeatmapOptions options;
  options.visible = {true, true, true, false, false, false};
  const Picture picture = picture_of(scores, options);
  EXPECT_TRUE(all_are(picture.cell(0, 0), kNanColor));
  EXPECT_TRUE(all_are(picture.cell(0, 1), kInfinityColor));
  EXPECT_TRUE(all_are(picture.cell(0, 2), kInfinityColor));
  for (const std::int64_t col : {0, 1, 2}) EXPECT_TRUE(look_masked(picture.cell(1, col)));
}

TEST(Heatmap, ExplainsTheColoursThatAreNoValueBesideTheBar) {
  const Matrix plain{1, 1, {0.5}};
  const Matrix with_nan{1, 2, {kNan, 0.5}};
  HeatmapOptions options;
  const std::int64_t cell = 48 * 48;
  EXPECT_EQ(count_color(picture_of(plain, {}).image, kNanColor), 0);
  EXPECT_EQ(count_color(picture_of(with_nan, {}).image, kNanColor), cell + kBarWidth * kBarWidth);
  options.visible = {true, false};
  const Image masked = picture_of(Matrix{1, 2, {0.5, 0.5}}, options).image;
  EXPECT_EQ(count_color(masked, kMaskedColor) + count_color(masked, kMaskedHatchColor), cell + kBarWidth * kBarWidth);
}

TEST(Heatmap, HasAColourBarFromTheHighestValueDown) {
  const Matrix values{21, 21, std::vector<double>(21 * 21, 0.0)};
  const HeatmapLayout layout = layout_of({{&values, ""}}, {}, false);
  const Image image = draw_heatmap({&values, ""}, {});
  EXPECT_EQ(image.at(layout.bar.x, layout.bar.y), viridis(1.0));
  EXPECT_EQ(image.at(layout.bar.x, layout.bar.y + layout.bar_height - 1), viridis(0.0));
  EXPECT_EQ(image.at(layout.bar.x + kBarWidth / 2, layout.bar.y + layout.bar_height / 2 - 1), viridis(0.5));
}

TEST(Heatmap, WritesItsTitlesAndLabels) {
  const Matrix values{3, 3, std::vector<double>(9, 0.0)};
  const auto pixels_of = [&](const std::string& title, const std::string& subtitle, const std::string& word) {
    HeatmapOptions options;
    options.title = title;
    options.subtitle = subtitle;
    options.query_labels = {"a", word, "c"};
    options.key_labels = {"d", "e", "f"};
    return draw_heatmap({&values, ""}, options).pixels;
  };
  const std::vector<Rgb> pixels = pixels_of("B=1", "weights", "b");
  EXPECT_EQ(pixels, pixels_of("B=1", "weights", "b"));
  EXPECT_NE(pixels, pixels_of("B=2", "weights", "b"));
  EXPECT_NE(pixels, pixels_of("B=1", "weightz", "b"));
  EXPECT_NE(pixels, pixels_of("B=1", "weights", "x"));
}

// Each label's dark pixels lie beside its own cell: the label of row 1 changes nothing above or below that row.
TEST(Heatmap, WritesALabelBesideItsOwnRowAndColumn) {
  const Matrix values{3, 3, std::vector<double>(9, 0.0)};
  HeatmapOptions options;
  options.query_labels = options.key_labels = {"", "", ""};
  const Image blank = draw_heatmap({&values, ""}, options);
  const CellGrid grid = heatmap_cell_grid({&values, ""}, options);
  options.query_labels = options.key_labels = {"", "W", ""};
  const Image labelled = draw_heatmap({&values, ""}, options);
  ASSERT_EQ(blank.width, labelled.width);
  ASSERT_EQ(heatmap_cell_grid({&values, ""}, options).first_cell.y, grid.first_cell.y);
  std::int64_t beside_row = 0;
  std::int64_t above_column = 0;
  for (std::int64_t y = 0; y < blank.height; ++y) {
    for (std::int64_t x = 0; x < blank.width; ++x) {
      if (blank.at(x, y) == labelled.at(x, y)) continue;
      const std::int64_t row = (y - grid.first_cell.y) / grid.cell;
      const std::int64_t column = (x - grid.first_cell.x) / grid.cell;
      if (x < grid.first_cell.x && y > grid.first_cell.y) {
        EXPECT_EQ(row, 1);
        ++beside_row;
      } else {
        EXPECT_LT(y, grid.first_cell.y);
        EXPECT_EQ(column, 1);
        ++above_column;
      }
    }
  }
  EXPECT_GT(beside_row, 20);
  EXPECT_EQ(beside_row, above_column);
}

TEST(Overview, ShowsEveryHeadAtItsPlace) {
  std::vector<Matrix> heads;
  for (int head = 0; head < 12; ++head) heads.push_back({2, 2, {head / 12.0, 0, 0, head / 24.0}});
  std::vector<HeatmapPanel> panels;
  for (const Matrix& head : heads) panels.push_back({&head, "head"});
  const HeatmapLayout layout = layout_of(panels, {}, true);
  const Image image = decode_png(encode_png(draw_overview(panels, {})));
  EXPECT_EQ(layout.panel_columns, 4);
  for (std::int64_t head = 0; head < 12; ++head) {
    for (std::int64_t cell = 0; cell < 4; ++cell) {
      const std::vector<Rgb> pixels = cell_pixels(image, layout.cell_origin(head, cell / 2, cell % 2), layout.cell);
      EXPECT_TRUE(all_are(pixels, viridis(heads[static_cast<std::size_t>(head)].at(cell / 2, cell % 2))))
          << head << ' ' << cell;
    }
  }
  const PixelPosition first = layout.cell_origin(0, 0, 0);
  EXPECT_EQ(layout.cell_origin(3, 0, 0).y, first.y);
  EXPECT_EQ(layout.cell_origin(4, 0, 0).x, first.x);
  EXPECT_GT(layout.cell_origin(4, 0, 0).y, layout.cell_origin(0, 1, 0).y);
}

TEST(Overview, WorksForEveryNumberOfHeads) {
  const Matrix values{5, 5, std::vector<double>(25, 0.75)};
  for (const std::int64_t heads : {1, 2, 3, 5, 7, 64}) {
    const std::vector<HeatmapPanel> panels(static_cast<std::size_t>(heads), {&values, "head"});
    const HeatmapLayout layout = layout_of(panels, {}, true);
    const Image image = draw_overview(panels, {});
    EXPECT_GE(count_color(image, viridis(0.75)), heads * 25 * layout.cell * layout.cell) << heads;
  }
}

TEST(CellColor, ReadsTheScale) {
  EXPECT_EQ(cell_color(5.0, true, {5.0, 7.0}), viridis(0.0));
  EXPECT_EQ(cell_color(6.0, true, {5.0, 7.0}), viridis(0.5));
  EXPECT_EQ(cell_color(7.0, true, {5.0, 7.0}), viridis(1.0));
  EXPECT_EQ(cell_color(-100.0, true, {5.0, 7.0}), viridis(0.0));
  EXPECT_EQ(cell_color(100.0, true, {5.0, 7.0}), viridis(1.0));
}

TEST(CellColor, IsMaskedWhateverTheValueWhereTheQueryMayNotLook) {
  for (const double value : {0.0, 1.0, kNan, kInfinity, -kInfinity}) {
    EXPECT_EQ(cell_color(value, false, {0.0, 1.0}), kMaskedColor) << value;
  }
}

TEST(CellColor, KeepsItsHeadAtTheEndsOfTheNumbers) {
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(cell_color(0.0, true, {-kMost, kMost}), viridis(0.5));
  EXPECT_EQ(cell_color(kMost, true, {-kMost, kMost}), viridis(1.0));
  EXPECT_EQ(cell_color(kLeast, true, {0.0, kLeast}), viridis(1.0));
}

TEST(RangeOf, IsTheSmallestAndLargestVisibleValueOfAllPanels) {
  const Matrix first{1, 3, {-4.0, 2.0, 99.0}};
  const Matrix second{1, 3, {7.5, -1.0, -99.0}};
  const ColorScale range = range_of({{&first, ""}, {&second, ""}}, {true, true, false});
  EXPECT_EQ(range.low, -4.0);
  EXPECT_EQ(range.high, 7.5);
  EXPECT_EQ(range_of({{&first, ""}}, {}).high, 99.0);
}

TEST(RangeOf, LooksPastNanAndInfinity) {
  const Matrix values{1, 5, {kNan, -kInfinity, 1.0, kInfinity, 3.0}};
  const ColorScale range = range_of({{&values, ""}}, {});
  EXPECT_EQ(range.low, 1.0);
  EXPECT_EQ(range.high, 3.0);
}

TEST(RangeOf, IsZeroToOneWhenThereIsNoValue) {
  const Matrix values{1, 1, {kNan}};
  const ColorScale range = range_of({{&values, ""}}, {});
  EXPECT_EQ(range.low, 0.0);
  EXPECT_EQ(range.high, 1.0);
}

TEST(RangeOf, IsWidenedWhereAllValuesAreEqual) {
  for (const double value : {0.0, -3.0, 1e300}) {
    const Matrix values{1, 2, {value, value}};
    const ColorScale range = range_of({{&values, ""}}, {});
    EXPECT_LT(range.low, value);
    EXPECT_GT(range.high, value);
    EXPECT_EQ(cell_color(value, true, range), viridis(0.5)) << value;
  }
}

// Categories: kinds in place of numbers.
constexpr Rgb kCalm{200, 210, 220};
constexpr Rgb kAlarm{214, 24, 40};

HeatmapOptions with_categories() {
  HeatmapOptions options;
  options.title = "a map";
  options.categories = {{kCalm, "calm", false}, {kAlarm, "alarm", true}};
  return options;
}

Matrix calm_but_for_one(std::int64_t length, std::int64_t row, std::int64_t col) {
  Matrix values{length, length, std::vector<double>(static_cast<std::size_t>(length * length), 0.0)};
  values.at(row, col) = 1.0;
  return values;
}

TEST(Categories, GiveEachCellItsColorAndNoOther) {
  const Matrix values = calm_but_for_one(5, 3, 1);
  const HeatmapPanel panel{&values, ""};
  const Picture picture{draw_heatmap(panel, with_categories()), heatmap_cell_grid(panel, with_categories())};
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t col = 0; col < 5; ++col) {
      EXPECT_TRUE(all_are(picture.cell(row, col), row == 3 && col == 1 ? kAlarm : kCalm)) << row << ", " << col;
    }
  }
}

TEST(Categories, HaveALegendInPlaceOfTheColorBar) {
  const Matrix values = calm_but_for_one(5, 3, 1);
  const HeatmapLayout layout = layout_of({{&values, ""}}, with_categories(), false);
  EXPECT_EQ(layout.bar_height, 0);
  ASSERT_EQ(layout.legend.size(), 2u);
  EXPECT_EQ(layout.legend[1].color, kAlarm);
  EXPECT_EQ(layout.legend[1].text, "alarm");
  EXPECT_EQ(layout.legend_y, layout.first_map.y);
  EXPECT_LE(layout.legend_y + 2 * kLineHeight + kMargin, layout.height + kLineHeight);
}

TEST(Categories, ATinyMarkedCellHasARingThatLeavesItsNeighboursAlone) {
  const Matrix values = calm_but_for_one(400, 200, 100);
  const HeatmapPanel panel{&values, ""};
  const Picture picture{draw_heatmap(panel, with_categories()), heatmap_cell_grid(panel, with_categories())};
  ASSERT_EQ(picture.grid.cell, 1);
  EXPECT_EQ(picture.cell(200, 100).front(), kAlarm);
  for (const std::int64_t step : {-1, 1}) {
    EXPECT_EQ(picture.cell(200 + step, 100).front(), kCalm);
    EXPECT_EQ(picture.cell(200, 100 + step).front(), kCalm);
  }
  EXPECT_EQ(picture.cell(200 - 6, 100).front(), kAlarm);
  EXPECT_GT(count_color(picture.image, kAlarm), 100);
}

TEST(Categories, ManyMarkedCellsHaveNoRings) {
  Matrix values = calm_but_for_one(400, 200, 100);
  for (std::int64_t col = 0; col < 200; ++col) values.at(10, col) = 1.0;
  const HeatmapPanel panel{&values, ""};
  const Picture picture{draw_heatmap(panel, with_categories()), heatmap_cell_grid(panel, with_categories())};
  EXPECT_EQ(picture.cell(200 - 6, 100).front(), kCalm);
}

TEST(Categories, RefuseAValueThatIsNone) {
  Matrix values = calm_but_for_one(3, 1, 1);
  for (const double value : {2.0, -1.0, kNan}) {
    values.at(0, 0) = value;
    EXPECT_THROW(draw_heatmap({&values, ""}, with_categories()), std::invalid_argument) << value;
  }
}

}  // namespace
}  // namespace attn
