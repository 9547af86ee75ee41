#include "cli/trace_command.h"

#include <memory>

#include "cli/output.h"
#include "cli/progress.h"
#include "experiment/memory_estimate.h"
#include "report/json_report.h"
#include "report/text_report.h"
#include "trace/trace_attention.h"

namespace attn {
namespace {

constexpr std::int64_t kMaxValues = 4096;  ///< numbers of a tensor that --values still carries along.

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
        "attn-cli trace configs/text.json --values",
        "attn-cli trace configs/tiny.json --json - | python3 -m json.tool"},
       "  0  done\n"
       "  2  the command line or the config is wrong\n"
       "  3  it could not be done: file, memory, device, output\n"});
  add_config_options(command, options->config);
  command.add_value("--json", "FILE", options->json, "write the record as JSON; - prints it in place of the text");
  command.add_flag("--values", options->values, "also print the numbers of small tensors");
  command.add_flag("--no-backward", options->no_backward, "the forward pass only");
  add_memory_option(command, options->config);
  command.set_action([options](Streams& streams) { return run_trace(*options, streams); });
}

ExitStatus run_trace(const TraceCommandOptions& options, Streams& streams) {
  const std::optional<std::uint64_t> max_memory = max_memory_bytes(options.config);
  const RunConfig config = load_config(options.config, streams.in);
  check_output_file(options.json);
  refuse_if_too_large(config, Purpose::kTrace, max_memory);

  AttentionTrace trace;
  {
    const Progress progress(streams.err, streams.err_is_terminal, "tracing");
    trace = trace_attention(config, {.backward = !options.no_backward, .max_values = options.values ? kMaxValues : 0});
  }
  write_notes(streams.err, trace.notes);
  if (!write_json(
          options.json, [&] { return to_json_text(trace); }, streams))
    return ExitStatus::kOk;
  write_text(streams.out, trace, {.values = options.values, .color = streams.color});
  return ExitStatus::kOk;
}

}  // namespace attn
