#include "cli/heatmap_command.h"

#include <filesystem>
#include <memory>
#include <ostream>
#include <system_error>
#include <utility>

#include "cli/heatmap_pictures.h"
#include "cli/model_notes.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/memory_estimate.h"
#include "files/whole_file.h"
#include "report/heatmap_index.h"
#include "report/json_report.h"
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

Step parse_map_step(const std::optional<std::string>& word) {
  if (!word) return Step::kWeights;
  const std::vector<std::string> names = map_step_names();
  for (const std::string& name : names) {
    if (name == *word) return find_step(name).value();
  }
  throw ConfigError("option --what: " + unknown_word("step", *word, names));
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
  write_notes(streams.err, model_notes(config));
  write_notes(streams.err, notes);
  write_summary(streams.out, folder, index);
  return ExitStatus::kOk;
}

}  // namespace attn
