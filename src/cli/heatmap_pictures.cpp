#include "cli/heatmap_pictures.h"

#include <cstdint>
#include <utility>

#include "config/padded_tokens.h"
#include "core/text.h"
#include "render/heatmap.h"
#include "render/png.h"
#include "report/run_facts.h"

namespace attn {
namespace {

/// Weights are shares of 1, so that all their pictures can be compared; other steps have no such natural scale.
bool has_fixed_scale(Step step) { return step == Step::kWeights; }

/// The item's words; none where there are no words.
std::vector<std::string> printable_labels(const AttentionMaps& maps, std::int64_t batch) {
  std::vector<std::string> labels;
  if (maps.token_labels.empty()) return labels;
  for (const std::string& label : maps.token_labels[static_cast<std::size_t>(batch)])
    labels.push_back(printable(label));
  return labels;
}

/// Padding is named as such, and what is no padding by its word or its position.
void name_padding(std::vector<std::string>& labels, const RunConfig& config, std::int64_t batch) {
  if (!config.padding) return;
  for (std::int64_t j = 0; j < key_length(config); ++j) {
    if (labels.size() == static_cast<std::size_t>(j)) labels.push_back(std::to_string(j));
    if (!is_real_key(config, batch, j)) labels[static_cast<std::size_t>(j)] = kPaddingLabel;
  }
}

/// What the cells are that have no number.
std::string hidden_name(const RunConfig& config, Step step) {
  const AttentionConfig& layer = config.attention;
  std::vector<std::string> reasons;
  if (is_after_mask(step)) {
    if (layer.causal || layer.window || layer.mask) reasons.emplace_back("masked");
  } else if (config.cache) {
    reasons.emplace_back("not computed");
  }
  if (config.padding) reasons.emplace_back("padding");
  return join(reasons, " or ");
}

/// Draws the pictures of one run.
class Painter {
 public:
  explicit Painter(const AttentionMaps& maps) : maps_(maps), step_(step_name(maps.step)) {}

  Picture overview(const std::vector<const AttentionMap*>& heads) const {
    const std::int64_t batch = heads.front()->batch;
    std::vector<HeatmapPanel> panels;
    Picture picture;
    for (const AttentionMap* map : heads) {
      panels.push_back({&map->values, head_name(map->head)});
      add_head(picture, map->head);
    }
    const HeatmapOptions options = make_options(panels, batch, head_words(heads));
    picture.facts.overview = true;
    picture.facts.file = step_ + "_b" + std::to_string(batch) + ".png";
    finish(picture, draw_overview(panels, options), batch, options);
    return picture;
  }

  Picture single(const AttentionMap& map) const {
    const HeatmapPanel panel{&map.values, ""};
    const HeatmapOptions options = make_options({panel}, map.batch, head_name(map.head));
    const CellGrid grid = heatmap_cell_grid(panel, options);
    Picture picture;
    add_head(picture, map.head);
    picture.facts.file = step_ + "_b" + std::to_string(map.batch) + "_h" + std::to_string(map.head) + ".png";
    picture.facts.cells = {grid.first_cell.x, grid.first_cell.y, grid.cell};
    finish(picture, draw_heatmap(panel, options), map.batch, options);
    return picture;
  }

 private:
  /// "head 4", of grouped heads "head 4 (kv 1)".
  std::string head_name(std::int64_t head) const {
    const AttentionConfig& layer = maps_.config.attention;
    const std::string name = "head " + std::to_string(head);
    return layer.heads_a_group() == 1 ? name : name + " (kv " + std::to_string(head / layer.heads_a_group()) + ")";
  }

  void add_head(Picture& picture, std::int64_t head) const {
    picture.facts.heads.push_back(head);
    picture.facts.key_heads.push_back(head / maps_.config.attention.heads_a_group());
  }

  std::string head_words(const std::vector<const AttentionMap*>& heads) const {
    if (static_cast<std::int64_t>(heads.size()) == maps_.config.attention.H) return "all heads";
    std::vector<std::string> numbers;
    for (const AttentionMap* map : heads) numbers.push_back(std::to_string(map->head));
    return (heads.size() == 1 ? "head " : "heads ") + join(numbers);
  }

  HeatmapOptions make_options(const std::vector<HeatmapPanel>& panels, std::int64_t batch,
                              const std::string& heads) const {
    HeatmapOptions options;
    options.visible = maps_.visible[static_cast<std::size_t>(batch)];
    if (!has_fixed_scale(maps_.step)) options.scale = range_of(panels, options.visible);
    options.title = layer_facts(maps_.config.attention) + ", " + shape_facts(maps_.config);
    options.subtitle = step_ + ", batch " + std::to_string(batch) + ", " + heads + ", scale " +
                       format_number(options.scale.low) + " to " + format_number(options.scale.high);
    if (maps_.config.cache) {
      options.subtitle += ", put together of " + std::to_string(1 + maps_.config.cache->steps) + " calls";
    }
    if (maps_.config.attention.sink && maps_.step == Step::kWeights) {
      options.subtitle += ", what a row lacks to 1 is the sink's";
    }
    options.hidden_name = hidden_name(maps_.config, maps_.step);
    options.query_labels = printable_labels(maps_, batch);
    if (maps_.config.memory_length) {
      options.own_query_positions = true;
    } else {
      name_padding(options.query_labels, maps_.config, batch);
      options.key_labels = options.query_labels;
      return options;
    }
    name_padding(options.key_labels, maps_.config, batch);
    return options;
  }

  static void finish(Picture& picture, const Image& image, std::int64_t batch, const HeatmapOptions& options) {
    picture.facts.batch = batch;
    picture.facts.scale_low = options.scale.low;
    picture.facts.scale_high = options.scale.high;
    picture.facts.width = image.width;
    picture.facts.height = image.height;
    picture.png = encode_png(image);
  }

  const AttentionMaps& maps_;
  std::string step_;
};

std::vector<std::vector<std::int64_t>> padded_keys(const RunConfig& config) {
  std::vector<std::vector<std::int64_t>> items;
  if (!config.padding) return items;
  for (std::int64_t b = 0; b < config.B; ++b) {
    std::vector<std::int64_t>& columns = items.emplace_back();
    for (std::int64_t j = 0; j < key_length(config); ++j) {
      if (!is_real_key(config, b, j)) columns.push_back(j);
    }
  }
  return items;
}

}  // namespace

std::vector<Picture> draw_pictures(const AttentionMaps& maps, Progress& progress) {
  const Painter painter(maps);
  std::vector<Picture> pictures;
  for (std::size_t start = 0; start < maps.maps.size();) {
    std::vector<const AttentionMap*> heads;
    for (; start < maps.maps.size() && (heads.empty() || maps.maps[start].batch == heads.front()->batch); ++start) {
      heads.push_back(&maps.maps[start]);
    }
    progress.set("drawing batch entry " + std::to_string(heads.front()->batch));
    pictures.push_back(painter.overview(heads));
    for (const AttentionMap* map : heads) pictures.push_back(painter.single(*map));
  }
  return pictures;
}

HeatmapIndex make_index(const AttentionMaps& maps, const std::vector<Picture>& pictures) {
  HeatmapIndex index;
  index.config = maps.config;
  index.torch_version = maps.torch_version;
  index.threads = maps.threads;
  index.step = step_name(maps.step);
  index.fixed_scale = has_fixed_scale(maps.step);
  index.rows = maps.maps.front().values.rows;
  index.cols = maps.maps.front().values.cols;
  index.token_labels = maps.token_labels;
  index.padded_keys = padded_keys(maps.config);
  for (const Picture& picture : pictures) index.files.push_back(picture.facts);
  return index;
}

}  // namespace attn
