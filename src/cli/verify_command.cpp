#include "cli/verify_command.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <ostream>
#include <utility>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verify_lists.h"
#include "cli/verify_picture.h"
#include "cli/verify_runs.h"
#include "core/error.h"
#include "core/text.h"
#include "files/whole_file.h"
#include "report/json_report.h"
#include "report/junit_report.h"
#include "report/text_report.h"

namespace attn {
namespace {

/// The config of a list, if one was given.
std::optional<RunConfig> listed_config(const VerifyCommandOptions& options, std::istream& in) {
  if (options.configs.empty() && options.common.set_words.empty()) return std::nullopt;
  if (options.configs.size() > 1)
    throw ConfigError("a list is of one CONFIG at most, got " + std::to_string(options.configs.size()));
  ConfigOptions config = options.common;
  if (!options.configs.empty()) config.path = options.configs.front();
  return load_config(config, in);
}

/// Prints what needs no run. False when a run is wanted.
bool print_lists(const VerifyCommandOptions& options, Streams& streams) {
  if (options.explain) {
    explain_check(streams.out, *options.explain);
  } else if (options.list_checks) {
    print_check_list(streams.out, listed_config(options, streams.in));
  } else if (options.list_faults) {
    print_fault_list(streams.out, listed_config(options, streams.in));
  } else {
    return false;
  }
  return true;
}

ExitStatus exit_status(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::kPassed:
      return ExitStatus::kOk;
    case RunVerdict::kFailed:
      return ExitStatus::kCheckFailed;
    case RunVerdict::kBadConfig:
      return ExitStatus::kUsage;
    case RunVerdict::kError:
    case RunVerdict::kNothingChecked:
    case RunVerdict::kNotRun:
      break;
  }
  return ExitStatus::kFailure;
}

/// What a run has to say on standard error.
void write_remarks(std::ostream& err, const VerifyRun& run, bool is_single) {
  const std::string where = is_single ? "" : run_label(run);
  if (const auto* result = std::get_if<VerifyResult>(&run.outcome)) write_notes(err, result->notes, where);
  if (const auto* result = std::get_if<SelfTestResult>(&run.outcome)) write_notes(err, result->notes, where);
  const auto* error = std::get_if<RunError>(&run.outcome);
  if (error == nullptr || is_single) return;
  const bool names_config = error->message.starts_with(printable(run.source) + ":");
  err << "attn-cli: " << (names_config && run.sweep.empty() ? "" : where + ": ") << error->message << '\n';
}

/// Runs them one after the other, and tells of each as soon as it is done: on standard error, and to `finished`, so
/// that nothing is lost with a run that takes too long. A run that cannot be carried out is a record of its own; of a
/// single run the exception is kept too, for it ends the program.
std::vector<VerifyRun> carry_out_all(const std::vector<PlannedRun>& planned, const VerifyTask& task, Streams& streams,
                                     std::exception_ptr& single_failure,
                                     const std::function<void(const VerifyRun&)>& finished) {
  const bool is_single = planned.size() == 1;
  std::vector<VerifyRun> runs;
  for (const PlannedRun& run : planned) {
    const std::string where = is_single ? ""
                                        : ", run " + std::to_string(runs.size() + 1) + " of " +
                                              std::to_string(planned.size()) + ": " + run_label(run.source, run.sweep);
    try {
      Progress progress(streams.err, streams.err_is_terminal, "building the layer" + where);
      runs.push_back(carry_out(run, task, [&](const std::string& what) { progress.set(what + where); }));
    } catch (...) {
      if (is_single) single_failure = std::current_exception();
      runs.push_back(failed_run(run, std::current_exception()));
    }
    write_remarks(streams.err, runs.back(), is_single);
    finished(runs.back());
  }
  return runs;
}

void write_picture(const std::optional<std::string>& path, const VerifyRun& run, std::ostream& err) {
  const auto* result = std::get_if<VerifyResult>(&run.outcome);
  if (!path || result == nullptr) return;
  std::string reason;
  const std::optional<std::string> png = draw_dependency_picture(*result, reason);
  if (!png) return write_notes(err, {"no picture written: " + reason});
  write_whole_file(*path, *png);
}

}  // namespace

void add_verify_command(CommandLine& line) {
  auto options = std::make_shared<VerifyCommandOptions>();
  Command& command = line.add_command(
      "verify",
      {"prove that the layer is causal, correct and differentiable, check by check",
       "Runs every check that applies and prints a line for each: pass, fail, n/a (it cannot say anything here, and\n"
       "says why) or error (it could not be carried out). Below a failure stands how large the error is, the limit\n"
       "and its reason, and where it is: batch, head, query, key; and the known mistake that explains it, if one "
       "does.\n"
       "Several configs, folders and sweeps run in one go, with one summary and one exit status: a config that is\n"
       "wrong does not stop the others.",
       {"attn-cli verify configs/causal_multi_head.json",
        "attn-cli verify configs/tiny.json --check causality,mask-control --verbose",
        "attn-cli verify configs/tiny.json --strict --json report.json", "attn-cli verify configs --junit report.xml",
        "attn-cli verify configs/tiny.json configs/encoder.json --sweep dtype=float32,float64,bfloat16",
        "attn-cli verify configs/tiny.json --self-test",
        "attn-cli verify configs/tiny.json --fault scale-none --picture map.png",
        "attn-cli verify --explain effective-mask"},
       "  0  no check failed or could not be carried out, and at least one passed\n"
       "  1  a check failed; with --self-test: a planted fault survived, or the honest layer raised an alarm\n"
       "  2  the command line or a config is wrong\n"
       "  3  it could not be done: file, memory, device, output; a check that could not be carried out;\n"
       "     nothing could be checked\n"
       "  of several runs: 2 before 1 before 3 before 0\n"});
  command.add_arguments("CONFIG", options->configs,
                        "JSON files; a folder stands for its *.json files, - for standard input.\n"
                        "Not needed when --set gives B, T, d_model and H");
  add_set_option(command, options->common);
  command.add_values("--sweep", "KEY=V1,V2,...", options->sweep,
                     "run once for each value; several sweeps: for every combination");
  command.add_values("--check", "NAME,...", options->check, "only these checks");
  command.add_values("--skip", "NAME,...", options->skip, "all but these checks");
  command.add_values("--require", "NAME,...", options->require, "n/a of these checks is a failure");
  command.add_flag("--strict", options->strict, "n/a of any check is a failure");
  command.add_flag("--quick", options->quick, "less work where a check may take a sample; it says what it left out");
  command.add_value("--json", "FILE", options->json, "write the record as JSON; - prints it in place of the text");
  command.add_value("--junit", "FILE", options->junit,
                    "write JUnit XML for a CI system; - prints it in place of the text");
  command.add_value("--picture", "FILE", options->picture,
                    "when effective-mask fails: a PNG of which key moves which query,\nthe wrong cells marked");
  command.add_flag("--verbose", options->verbose, "numbers, limits, reasons and times of every check");
  command.add_flag("--self-test", options->self_test,
                   "plant every known fault that applies: each must be caught, and the honest\n"
                   "layer must raise no alarm");
  command.add_value("--fault", "NAME", options->fault, "judge the layer with this fault planted: must exit with 1");
  command.add_flag("--list-checks", options->list_checks,
                   "print every check and what it asks; with a CONFIG those that apply");
  command.add_flag("--list-faults", options->list_faults, "print every planted fault; with a CONFIG those that apply");
  command.add_value("--explain", "CHECK", options->explain, "print all that is known about a check");
  add_memory_option(command, options->common);
  command.set_action([options](Streams& streams) { return run_verify(*options, streams); });
}

ExitStatus run_verify(const VerifyCommandOptions& options, Streams& streams) {
  refuse_contradictions(options);
  if (print_lists(options, streams)) return ExitStatus::kOk;
  const VerifyTask task = read_task(options);
  const std::vector<PlannedRun> planned =
      plan_runs(options.configs, options.common.set_words, options.sweep, streams.in);
  check_outputs(options, planned);

  const TextOptions text{.verbose = options.verbose, .color = streams.color};
  const bool is_single = planned.size() == 1, has_text = options.json != "-" && options.junit != "-";
  std::exception_ptr single_failure;
  const std::vector<VerifyRun> runs =
      carry_out_all(planned, task, streams, single_failure, [&](const VerifyRun& finished) {
        if (!has_text || is_single) return;
        write_block(streams.out, finished, text);
        streams.send();
      });
  const auto make_junit = [&] { return to_junit_text(runs); };
  if (single_failure) {
    write_record(options.junit == "-" ? std::nullopt : options.junit, make_junit, streams);
    std::rethrow_exception(single_failure);
  }
  write_record(
      options.json, [&] { return is_single ? to_json_text(runs.front()) : to_json_text(runs); }, streams);
  write_record(options.junit, make_junit, streams);
  write_picture(options.picture, runs.front(), streams.err);
  if (has_text) is_single ? write_text(streams.out, runs.front(), text) : write_summary(streams.out, runs, text);
  return exit_status(summarize(runs).worst);
}

}  // namespace attn
