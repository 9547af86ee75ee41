#include "cli/config_command.h"

#include <memory>
#include <ostream>

#include "config/config_file.h"
#include "report/json_report.h"

namespace attn {

void add_config_command(CommandLine& line) {
  auto options = std::make_shared<ConfigOptions>();
  Command& command =
      line.add_command("config", {"print what a config means, with every default filled in",
                                  "The output is itself a valid config, with absolute paths. Nothing is run.",
                                  {"attn-cli config configs/tiny.json",
                                   "attn-cli config configs/tiny.json --set T=32 --set dtype=float64 > effective.json"},
                                  "  0  the config is valid\n"
                                  "  2  the command line or the config is wrong\n"
                                  "  3  it could not be read or printed\n"});
  add_config_options(command, *options);
  command.set_action([options](Streams& streams) { return run_config(*options, streams); });
}

ExitStatus run_config(const ConfigOptions& options, Streams& streams) {
  streams.out << to_json_text(load_config(options, streams.in));
  return ExitStatus::kOk;
}

}  // namespace attn
