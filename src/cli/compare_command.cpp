#include "cli/compare_command.h"

#include <charconv>
#include <cmath>
#include <memory>
#include <ostream>

#include "cli/output.h"
#include "core/error.h"
#include "core/text.h"
#include "report/compare_report.h"
#include "trace/compare_traces.h"

namespace attn {
namespace {

std::optional<double> parse_limit(const std::optional<std::string>& word) {
  if (!word) return std::nullopt;
  double limit = 0.0;
  const char* end = word->data() + word->size();
  const auto [rest, error] = std::from_chars(word->data(), end, limit);
  if (error != std::errc{} || rest != end || !std::isfinite(limit) || limit < 0.0) {
    throw ConfigError("option --limit: expected a number of at least 0 such as 1e-6, got " + in_quotes(*word));
  }
  return limit;
}

}  // namespace

void add_compare_command(CommandLine& line) {
  auto options = std::make_shared<CompareCommandOptions>();
  Command& command = line.add_command(
      "compare",
      {"say at which step two saved traces part, by how much and where",
       "Takes two files of attn-cli trace --save, or of any program that names its tensors as that does\n"
       "(forward.scores, backward.scores, gradient.c_attn.weight ...), and prints a line for each tensor that both\n"
       "have, in the order of the run. Two tensors agree when they are no further apart than rounding explains:\n"
       "2 * (sqrt(place in the run) * eps of the coarser dtype + sqrt(longest sum) * eps of the sums), times the\n"
       "tensor's scale: its largest value, or that of the numbers whose difference it is. NaN equals NaN, -inf\n"
       "equals -inf. Tensors that only one file has are named.",
       {"attn-cli compare before.safetensors after.safetensors",
        "attn-cli compare a.safetensors b.safetensors --exact --json -"},
       "  0  all agree\n"
       "  1  they part\n"
       "  2  the command line is wrong, a file is no trace, or shapes differ\n"
       "  3  it could not be done: file, memory, output\n"});
  command.add_arguments("FILE", options->files, "the two saved traces, .safetensors");
  command.add_flag("--exact", options->exact, "demand the same dtype and the same bits");
  command.add_value("--limit", "X", options->limit,
                    "agree up to X times a tensor's scale, in place of the rounding rule");
  command.add_value("--json", "FILE", options->json, "write the record as JSON; - prints it in place of the text");
  command.set_action([options](Streams& streams) { return run_compare(*options, streams); });
}

ExitStatus run_compare(const CompareCommandOptions& options, Streams& streams) {
  if (options.files.size() != 2) {
    throw ConfigError("compare: expected two saved traces, got " + std::to_string(options.files.size()));
  }
  const std::optional<double> limit = parse_limit(options.limit);
  if (limit && options.exact) throw ConfigError("option --limit: cannot be combined with --exact");
  if (options.json) refuse_overwriting({{"--json", *options.json}}, {options.files[0], options.files[1]});
  check_output_file(options.json);

  const TraceComparison comparison =
      compare_traces(options.files[0], options.files[1], {.exact = options.exact, .limit = limit});
  if (write_record(
          options.json, [&] { return to_json_text(comparison); }, streams)) {
    write_text(streams.out, comparison, streams.color);
  }
  return comparison.first_parted() == nullptr ? ExitStatus::kOk : ExitStatus::kCheckFailed;
}

}  // namespace attn
