#include "cli/trace_command.h"

#include <filesystem>
#include <memory>
#include <vector>

#include "cli/model_notes.h"
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

constexpr std::int64_t kMaxValues = 4096;  ///< numbers of a tensor that --values still carries along.

/// Before any work is done: neither file can be one that the run reads, nor one that surely cannot be written.
void check_outputs(const TraceCommandOptions& options, const RunConfig& config) {
  if (options.save == "-") throw ConfigError("option --save: expected a file, the bytes of tensors are not printed");
  std::vector<OutputFile> outputs;
  if (options.json) outputs.push_back({"--json", *options.json});
  if (options.save) outputs.push_back({"--save", *options.save});
  refuse_overwriting(outputs, files_read(config));
  check_output_file(options.json);
  check_output_file(options.save);
}

void save(const std::filesystem::path& path, const AttentionTrace& trace, std::ostream& err) {
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
       "they arise, from the loss sum(output * dy) with a dy drawn from the seed. With a cache the layer runs once\n"
       "for each piece of the sequence, and forward only.\n"
       "\n"
       "Letters of shapes: B batch, T tokens (T_q queries and T_k keys where they differ), d_model width of a token,\n"
       "H query heads, H_kv heads of keys and values where they are fewer, d_k width of a head.",
       {"attn-cli trace configs/tiny.json", "attn-cli trace --set B=2 --set T=8 --set d_model=64 --set H=4",
        "attn-cli trace configs/text.json --values", "attn-cli trace configs/llama_cache.json",
        "attn-cli trace configs/tiny.json --json - | python3 -m json.tool",
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
  check_outputs(options, config);
  refuse_if_too_large(config, options.save ? Purpose::kSavedTrace : Purpose::kTrace, max_memory);

  AttentionTrace trace;
  {
    const Progress progress(streams.err, streams.err_is_terminal, "tracing");
    trace = trace_attention(config, {.backward = !options.no_backward,
                                     .max_values = options.values ? kMaxValues : 0,
                                     .keep_tensors = options.save.has_value()});
  }
  write_notes(streams.err, model_notes(config));
  write_notes(streams.err, trace.notes);
  if (options.save) save(*options.save, trace, streams.err);
  if (!write_record(
          options.json, [&] { return to_json_text(trace); }, streams))
    return ExitStatus::kOk;
  write_text(streams.out, trace, {.values = options.values, .color = streams.color});
  return ExitStatus::kOk;
}

}  // namespace attn
