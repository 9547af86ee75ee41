#include "cli/run.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/compare_command.h"
#include "cli/config_command.h"
#include "cli/failure.h"
#include "cli/heatmap_command.h"
#include "cli/output.h"
#include "cli/trace_command.h"
#include "cli/verify_command.h"
#include "experiment/torch_version.h"
#include "report/tool_version.h"

namespace attn {
namespace {

std::string version_line() { return "attn-cli " + tool_version() + " (LibTorch " + torch_version() + ")"; }

HelpTexts program_texts() {
  return {
      "Explores an attention layer: shows what it computes, and proves that it is right.",
      "CONFIG is a JSON file such as {\"B\": 2, \"T\": 8, \"d_model\": 64, \"H\": 4}: batch, sequence length, width "
      "of\n"
      "a token, heads. Results go to standard output, everything else to standard error. All keys of a config, with\n"
      "their defaults, are printed by attn-cli config CONFIG.",
      {"attn-cli trace configs/tiny.json", "attn-cli verify configs/causal_multi_head.json",
       "attn-cli heatmap configs/minilm_layer0.json -o pictures",
       "attn-cli trace --set B=2 --set T=8 --set d_model=64 --set H=4"},
      "  0  done; for verify: no check failed or could not be carried out, and at least one passed\n"
      "  1  a check failed\n"
      "  2  the command line or a config is wrong\n"
      "  3  it could not be done: file, memory, device, output (a reader of the output that has gone is no\n"
      "     news: nothing is printed then), internal error; nothing could be checked\n"};
}

/// Colour is for people at a terminal who have not said otherwise (https://no-color.org).
bool wants_color(const std::ostream& out) {
  if (&out != &std::cout || ::isatty(STDOUT_FILENO) == 0) return false;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  return !refused && term != nullptr && std::string_view(term) != "dumb";
}

bool is_error_terminal(const std::ostream& err) { return &err == &std::cerr && ::isatty(STDERR_FILENO) != 0; }

/// With --debug: everything that is known, the causes of an exception included.
void print_causes(std::ostream& err, const std::exception& exception) {
  err << exception.what() << '\n';
  try {
    std::rethrow_if_nested(exception);
  } catch (const std::exception& cause) {
    err << "caused by: ";
    print_causes(err, cause);
  } catch (...) {
    err << "caused by something that is no std::exception\n";
  }
}

ExitStatus report(std::ostream& err, const std::exception_ptr& exception, bool debug) {
  const Failure failure = describe(exception);
  err << "attn-cli: " << failure.text << '\n';
  if (!debug) return failure.status;
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    print_causes(err, error);
  } catch (...) {
    err << "something that is no std::exception\n";
  }
  return failure.status;
}

/// Runs one command. Its results are collected first, so that a command that fails half way prints none of them, but
/// for the parts that it sends ahead.
ExitStatus run_words(CommandLine& line, int argc, const char* const* argv, Streams& real) {
  const Action action = line.parse(argc, argv);
  std::ostringstream results;
  const auto send = [&] {
    write_standard_output(real.out, results.str());
    results.str("");
  };
  Streams streams{real.in, results, real.err, real.color, real.err_is_terminal, send};
  const ExitStatus status = action(streams);
  send();
  return status;
}

}  // namespace

int run(int argc, const char* const* argv, std::istream& in, std::ostream& out, std::ostream& err) {
  CommandLine line("attn-cli", program_texts(), version_line);
  add_trace_command(line);
  add_verify_command(line);
  add_heatmap_command(line);
  add_config_command(line);
  add_compare_command(line);

  Streams streams{in, out, err, wants_color(out), is_error_terminal(err), {}};
  ExitStatus status = ExitStatus::kFailure;
  try {
    status = run_words(line, argc, argv, streams);
  } catch (const ClosedPipe&) {
    status = ExitStatus::kFailure;
  } catch (...) {
    status = report(err, std::current_exception(), line.debug());
  }
  return static_cast<int>(status);
}

}  // namespace attn
