#include "cli/verify_command.h"

#include <algorithm>
#include <memory>
#include <ostream>

#include "checks/check_list.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/memory_estimate.h"
#include "report/json_report.h"
#include "report/text_report.h"
#include "report/verdict.h"

namespace attn {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> check_names() {
  std::vector<std::string> names;
  for (const CheckInfo& info : check_list()) names.push_back(info.name);
  return names;
}

/// A comma list of known checks.
std::vector<std::string> parse_check_names(std::string_view option, const std::vector<std::string>& words) {
  std::vector<std::string> names = split_list(option, words);
  for (const std::string& name : names) {
    if (!contains(check_names(), name)) throw ConfigError(unknown_word("check", name, check_names()));
  }
  return names;
}

/// A required check that is not run could never turn the verdict red: that is a slip, not a wish.
void refuse_unselected(const std::vector<std::string>& required, const VerifyOptions& selection) {
  for (const std::string& name : required) {
    const bool selected = (selection.only.empty() || contains(selection.only, name)) && !contains(selection.skip, name);
    if (!selected)
      throw ConfigError("option --require: " + in_quotes(name) +
                        " is not among the checks that --check and --skip leave");
  }
}

/// One check a line, its name first, for people and for scripts.
void print_check_list(std::ostream& out) {
  std::size_t width = 0;
  for (const CheckInfo& info : check_list()) width = std::max(width, display_width(info.name));
  for (const CheckInfo& info : check_list()) {
    out << padded(info.name, width) << "  " << info.question;
    if (info.needs != "-") out << " (needs " << info.needs << ")";
    out << '\n';
  }
}

ExitStatus exit_status(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return ExitStatus::kOk;
    case Verdict::kFailed:
      return ExitStatus::kCheckFailed;
    case Verdict::kError:
    case Verdict::kNothingChecked:
      break;
  }
  return ExitStatus::kFailure;
}

}  // namespace

void add_verify_command(CommandLine& line) {
  auto options = std::make_shared<VerifyCommandOptions>();
  Command& command = line.add_command(
      "verify",
      {"prove that the layer is causal, correct and differentiable, check by check",
       "Runs every check that applies and prints a line for each: pass, fail, n/a (it cannot say anything here, and\n"
       "says why) or error (it could not be carried out). Below a failure stands how large the error is, the limit\n"
       "and its reason, and where it is: batch, head, query, key.",
       {"attn-cli verify configs/causal_multi_head.json",
        "attn-cli verify configs/tiny.json --check causality,mask-control --verbose",
        "attn-cli verify configs/tiny.json --strict --json report.json", "attn-cli verify --list-checks"},
       "  0  no check failed or could not be carried out, and at least one passed\n"
       "  1  a check failed\n"
       "  2  the command line or the config is wrong\n"
       "  3  it could not be done: file, memory, device, output; a check that could not be carried out;\n"
       "     nothing could be checked\n"});
  add_config_options(command, options->config);
  command.add_values("--check", "NAME,...", options->check, "only these checks");
  command.add_values("--skip", "NAME,...", options->skip, "all but these checks");
  command.add_values("--require", "NAME,...", options->require, "n/a of these checks is a failure");
  command.add_flag("--strict", options->strict, "n/a of any check is a failure");
  command.add_value("--json", "FILE", options->json, "write the record as JSON; - prints it in place of the text");
  command.add_flag("--verbose", options->verbose, "numbers, limits, reasons and times of every check");
  command.add_flag("--list-checks", options->list_checks, "print every check and what it asks; no CONFIG needed");
  add_memory_option(command, options->config);
  command.set_action([options](Streams& streams) { return run_verify(*options, streams); });
}

ExitStatus run_verify(const VerifyCommandOptions& options, Streams& streams) {
  if (options.list_checks) {
    print_check_list(streams.out);
    return ExitStatus::kOk;
  }
  VerifyOptions selection;
  selection.only = parse_check_names("--check", options.check);
  selection.skip = parse_check_names("--skip", options.skip);
  const std::vector<std::string> required = parse_check_names("--require", options.require);
  refuse_unselected(required, selection);
  const std::optional<std::uint64_t> max_memory = max_memory_bytes(options.config);
  const RunConfig config = load_config(options.config, streams.in);
  check_output_file(options.json);
  refuse_if_too_large(config, Purpose::kVerify, max_memory);

  VerifyResult result;
  {
    Progress progress(streams.err, streams.err_is_terminal, "building the layer");
    selection.progress = [&progress](const std::string& name, std::size_t index, std::size_t total) {
      progress.set("check " + name + " (" + std::to_string(index + 1) + " of " + std::to_string(total) + ")");
    };
    result = verify_attention(config, selection);
  }
  require_checks(result, required, options.strict);
  write_notes(streams.err, result.notes);
  if (write_json(
          options.json, [&] { return to_json_text(result); }, streams)) {
    write_text(streams.out, result, {.verbose = options.verbose, .color = streams.color});
  }
  return exit_status(verdict(result));
}

void require_checks(VerifyResult& result, const std::vector<std::string>& required, bool strict) {
  for (CheckResult& check : result.checks) {
    if (check.status != CheckStatus::kNotApplicable) continue;
    if (!strict && !contains(required, check.name)) continue;
    check.status = CheckStatus::kFail;
    check.detail = "required, but does not apply: " + check.detail;
  }
}

}  // namespace attn
