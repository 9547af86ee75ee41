#include "cli/heatmap_command.h"

#include <filesystem>
#include <memory>
#include <ostream>
#include <system_error>
#include <utility>

#include "cli/output.h"
#include "cli/progress.h"
#include "config/padded_tokens.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/memory_estimate.h"
#include "files/whole_file.h"
#include "render/heatmap.h"
#include "render/png.h"
#include "report/heatmap_index.h"
#include "report/json_report.h"
#include "report/run_facts.h"
#include "report/table.h"
#include "trace/attention_maps.h"

namespace attn {
namespace {

constexpr const char* kDefaultFolder = "heatmaps";
constexpr const char* kIndexName = "index.json";

/// The names of the steps that can be drawn, in lines for the help.
std::string step_lines() {
  constexpr std::size_t kFirstLine = 4;
  std::vector<std::string> names = map_step_names();
  const std::vector<std::string> first(names.begin(), names.begin() + kFirstLine);
  names.erase(names.begin(), names.begin() + kFirstLine);
  return join(first) + ",\n" + join(names);
}

/// A drawn picture and what index.json says of it.
struct Picture {
  HeatmapFile facts;
  std::string png;
};

Step parse_map_step(const std::optional<std::string>& word) {
  if (!word) return Step::kWeights;
  const std::vector<std::string> names = map_step_names();
  for (const std::string& name : names) {
    if (name == *word) return find_step(name).value();
  }
  throw ConfigError("option --what: " + unknown_word("step", *word, names));
}

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

/// For each batch entry its overview, then its heads.
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

/// Writes all files or none: where one cannot be written, those before it go again. The index of an earlier run goes
/// first and the new one comes last, so that an index never speaks of pictures that are not there.
void write_pictures(const std::filesystem::path& folder, const std::vector<Picture>& pictures,
                    const std::string& index_text, const std::vector<std::filesystem::path>& inputs) {
  const std::filesystem::path index_path = folder / kIndexName;
  std::vector<std::filesystem::path> targets;
  for (const Picture& picture : pictures) targets.push_back(folder / picture.facts.file);
  targets.push_back(index_path);
  for (const std::filesystem::path& target : targets) {
    refuse_folder(target);
    refuse_overwriting({{"-o", target}}, inputs);
  }

  std::filesystem::remove(index_path);
  std::size_t written = 0;
  try {
    for (; written < pictures.size(); ++written) write_whole_file(targets[written], pictures[written].png);
    write_whole_file(index_path, index_text);
  } catch (const Error&) {
    std::error_code ignored;  // the first error is the one to tell
    for (std::size_t number = 0; number < written; ++number) std::filesystem::remove(targets[number], ignored);
    throw;
  }
}

std::string counted(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

/// Short, however many pictures there are: the overviews by name, the rest by number.
void write_summary(std::ostream& out, const std::filesystem::path& folder, const HeatmapIndex& index) {
  TableColumn names{"", false, {}};
  TableColumn meanings{"", false, {}};
  for (const HeatmapFile& file : index.files) {
    if (!file.overview) continue;
    names.cells.push_back(printable((folder / file.file).string()));
    meanings.cells.push_back("batch " + std::to_string(file.batch) + ", " + counted(file.heads.size(), "head") +
                             ", scale " + format_number(file.scale_low) + " to " + format_number(file.scale_high));
  }
  const std::size_t overviews = names.cells.size();
  names.cells.push_back(printable((folder / kIndexName).string()));
  meanings.cells.push_back("what each file shows, and its scale");

  out << index.step << " of " << printable(index.config.source_name) << ": "
      << counted(index.files.size() - overviews, "head picture") << " and " << counted(overviews, "overview") << " in "
      << printable(folder.string()) << '\n';
  write_table(out, {names, meanings});
}

}  // namespace

void add_heatmap_command(CommandLine& line) {
  auto options = std::make_shared<HeatmapCommandOptions>();
  Command& command = line.add_command(
      "heatmap",
      {"draw where each head looks, as PNG files",
       "One picture for each batch entry and head, and an overview of all heads for each batch entry: queries down,\n"
       "keys across, weights on one scale from 0 to 1 (scores: each picture's own range), what a query may not see,\n"
       "and padding, in grey. With a cache the maps of all calls are put together. index.json says what each file\n"
       "shows.",
       {"attn-cli heatmap configs/minilm_layer0.json", "attn-cli heatmap configs/text.json -o pictures --head 0,2",
        "attn-cli heatmap configs/tiny.json --what scaled_scores --batch 0",
        "attn-cli heatmap configs/smollm2_layer18.json -o pictures"},
       "  0  done\n"
       "  2  the command line or the config is wrong\n"
       "  3  it could not be done: file, memory, device, output\n"});
  add_config_options(command, options->config);
  command.add_value(
      "-o", "DIR", options->folder,
      "folder for the files, made where it is missing (default: heatmaps);\nother files in it stay untouched");
  command.add_values("--batch", "N,...", options->batch, "only these batch entries");
  command.add_values("--head", "N,...", options->head, "only these heads");
  command.add_value("--what", "STEP", options->what, step_lines() + "\n(default: weights)");
  add_memory_option(command, options->config);
  command.set_action([options](Streams& streams) { return run_heatmap(*options, streams); });
}

ExitStatus run_heatmap(const HeatmapCommandOptions& options, Streams& streams) {
  const Step step = parse_map_step(options.what);
  const MapSelection selection{parse_index_list("--batch", options.batch), parse_index_list("--head", options.head)};
  const std::optional<std::uint64_t> max_memory = max_memory_bytes(options.config);
  const RunConfig config = load_config(options.config, streams.in);
  refuse_if_too_large(config, Purpose::kHeatmap, max_memory);

  const std::filesystem::path folder = options.folder.value_or(kDefaultFolder);
  HeatmapIndex index;
  std::vector<std::string> notes;
  {
    Progress progress(streams.err, streams.err_is_terminal, "computing the maps");
    const AttentionMaps maps = capture_attention_maps(config, step, selection);
    // All pictures are in memory before the first is written: as PNG they take less than the maps themselves.
    const std::vector<Picture> pictures = draw_pictures(maps, progress);
    index = make_index(maps, pictures);
    notes = maps.notes;
    progress.set("writing");
    make_writable_folder(folder);
    write_pictures(folder, pictures, to_json_text(index), files_read(config));
  }
  write_notes(streams.err, notes);
  write_summary(streams.out, folder, index);
  return ExitStatus::kOk;
}

}  // namespace attn
