#include "cli/config_command.h"

#include <memory>
#include <ostream>

#include "cli/output.h"
#include "config/config_file.h"
#include "core/error.h"
#include "report/json_report.h"

namespace attn {

void add_config_command(CommandLine& line) {
  auto options = std::make_shared<ConfigCommandOptions>();
  Command& command = line.add_command(
      "config", {"print what a config means, with every default filled in; or a first one to begin with",
                 "The output is itself a valid config, with absolute paths. Nothing is run.\n"
                 "A model's own config.json is read too, by its model_type: notes say what was taken from which of\n"
                 "its keys.",
                 {"attn-cli config configs/tiny.json",
                  "attn-cli config configs/tiny.json --set T=32 --set dtype=float64 > effective.json",
                  "attn-cli config path/to/config.json --set B=1 --set T=16 --set layer=3",
                  "attn-cli config --example > my.json", "attn-cli config --example | attn-cli trace -"},
                 "  0  the config is valid\n"
                 "  2  the command line or the config is wrong\n"
                 "  3  it could not be read or printed\n"});
  add_config_options(command, options->config);
  command.add_flag("--example", options->example, "print a first config, with comments; no CONFIG needed");
  command.set_action([options](Streams& streams) { return run_config(*options, streams); });
}

ExitStatus run_config(const ConfigCommandOptions& options, Streams& streams) {
  if (options.example) {
    if (options.config.path || !options.config.set_words.empty()) {
      throw ConfigError("option --example: prints a config of its own, expected no CONFIG and no --set");
    }
    streams.out << example_config();
    return ExitStatus::kOk;
  }
  const RunConfig config = load_config(options.config, streams.in);
  write_notes(streams.err, config.origins.lines);  // a model's own config: what was taken from which key
  streams.out << to_json_text(config);
  return ExitStatus::kOk;
}

}  // namespace attn
