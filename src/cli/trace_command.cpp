#include "cli/trace_command.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "cli/output.h"
#include "cli/progress.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/memory_estimate.h"
#include "files/whole_file.h"
#include "report/json_report.h"
#include "report/saved_trace.h"
#include "report/text_report.h"
#include "trace/trace_attention.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxValues = 4096;  ///< numbers of a tensor that --values still carries along.

/// The files that the run reads, and what they are to it.
std::vector<std::pair<std::string, fs::path>> files_read(const TraceCommandOptions& options, const RunConfig& config) {
  std::vector<std::pair<std::string, fs::path>> files;
  if (options.config.path && *options.config.path != "-") files.emplace_back("the config", *options.config.path);
  if (config.weights) files.emplace_back("the weights", *config.weights);
  if (const auto* tensor = std::get_if<TensorInput>(&config.input)) files.emplace_back("the input", tensor->file);
  if (const auto* text = std::get_if<TextInput>(&config.input); text != nullptr && text->file) {
    files.emplace_back("the input", *text->file);
  }
  return files;
}

/// Whether both names lead to one file, through links and dots too.
bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  return fs::weakly_canonical(fs::absolute(a), error) == fs::weakly_canonical(fs::absolute(b), error);
}

/// A trace must not take the place of what it was made from.
void check_save_file(const TraceCommandOptions& options, const RunConfig& config) {
  if (!options.save) return;
  const std::string where = "option --save: ";
  if (*options.save == "-") throw ConfigError(where + "expected a file, the bytes of tensors are not printed");
  for (const auto& [what, file] : files_read(options, config)) {
    if (is_same_file(*options.save, file)) {
      throw ConfigError(where + printable(*options.save) + " is " + what + " of this run, expected another file");
    }
  }
  if (options.json && *options.json != "-" && is_same_file(*options.save, *options.json)) {
    throw ConfigError(where + printable(*options.save) + " is the file of --json too, expected another file");
  }
  check_output_file(options.save);
}

void save(const fs::path& path, const AttentionTrace& trace, std::ostream& err) {
  const std::string bytes = to_safetensors(trace);
  write_whole_file(path, bytes);
  write_notes(err, {printable(path.string()) + ": " + std::to_string(trace.kept.size()) + " tensors, " +
                    format_bytes(bytes.size()) + " written"});
}

}  // namespace

void add_trace_command(CommandLine& line) {
  auto options = std::make_shared<TraceCommandOptions>();
  Command& command = line.add_command(
      "trace",
      {"show the shape of every intermediate, forward and backward",
       "Runs the layer once and prints a line for each named step: its shape in letters and in numbers, bytes,\n"
       "range, mean, spread, NaN and infinity; then the gradient of every step and parameter in the order in which\n"
       "they arise, from the loss sum(output * dy) with a dy drawn from the seed.",
       {"attn-cli trace configs/tiny.json", "attn-cli trace --set B=2 --set T=8 --set d_model=64 --set H=4",
        "attn-cli trace configs/text.json --values", "attn-cli trace configs/tiny.json --json - | python3 -m json.tool",
        "attn-cli trace configs/tiny.json --save tiny.safetensors"},
       "  0  done\n"
       "  2  the command line or the config is wrong\n"
       "  3  it could not be done: file, memory, device, output\n"});
  add_config_options(command, options->config);
  command.add_value("--json", "FILE", options->json, "write the record as JSON; - prints it in place of the text");
  command.add_value("--save", "FILE", options->save,
                    "write every step, gradient and parameter as .safetensors, the config in its\n"
                    "metadata; the file works as weights and as input, and for attn-cli compare");
  command.add_flag("--values", options->values, "also print the numbers of small tensors");
  command.add_flag("--no-backward", options->no_backward, "the forward pass only");
  add_memory_option(command, options->config);
  command.set_action([options](Streams& streams) { return run_trace(*options, streams); });
}

ExitStatus run_trace(const TraceCommandOptions& options, Streams& streams) {
  const std::optional<std::uint64_t> max_memory = max_memory_bytes(options.config);
  const RunConfig config = load_config(options.config, streams.in);
  check_output_file(options.json);
  check_save_file(options, config);
  refuse_if_too_large(config, options.save ? Purpose::kSavedTrace : Purpose::kTrace, max_memory);

  AttentionTrace trace;
  {
    const Progress progress(streams.err, streams.err_is_terminal, "tracing");
    trace = trace_attention(config, {.backward = !options.no_backward,
                                     .max_values = options.values ? kMaxValues : 0,
                                     .keep_tensors = options.save.has_value()});
  }
  write_notes(streams.err, trace.notes);
  if (options.save) save(*options.save, trace, streams.err);
  if (!write_json(
          options.json, [&] { return to_json_text(trace); }, streams))
    return ExitStatus::kOk;
  write_text(streams.out, trace, {.values = options.values, .color = streams.color});
  return ExitStatus::kOk;
}

}  // namespace attn
