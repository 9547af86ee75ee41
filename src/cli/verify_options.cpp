#include "cli/verify_options.h"

#include <algorithm>
#include <utility>

#include "checks/check_list.h"
#include "checks/faults/faults.h"
#include "cli/output.h"
#include "cli/verify_picture.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr const char* kMapCheck = "effective-mask";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A comma list of known checks.
std::vector<std::string> parse_check_names(std::string_view option, const std::vector<std::string>& words) {
  std::vector<std::string> names = split_list(option, words);
  for (const std::string& name : names) require_check(name);
  return names;
}

bool is_selected(const std::string& name, const VerifyOptions& selection) {
  return (selection.only.empty() || contains(selection.only, name)) && !contains(selection.skip, name);
}

/// A required check that is not run could never turn the verdict red: that is a slip, not a wish. The same goes for a
/// picture of what is not looked at.
void refuse_unselected(const std::vector<std::string>& required, const VerifyOptions& selection, bool picture) {
  for (const std::string& name : required) {
    if (is_selected(name, selection)) continue;
    throw ConfigError("option --require: " + in_quotes(name) +
                      " is not among the checks that --check and --skip leave");
  }
  if (picture && !(contains(check_names(), kMapCheck) && is_selected(kMapCheck, selection))) {
    throw ConfigError("option --picture: draws what " + std::string(kMapCheck) +
                      " finds, which is not among the checks that --check and --skip leave");
  }
}

void refuse_unknown_fault(const std::string& name) {
  std::vector<std::string> names;
  for (const FaultInfo& info : fault_list()) names.push_back(info.name);
  if (!contains(names, name)) throw ConfigError("option --fault: " + unknown_word("fault", name, names));
}

/// An option and whether it was given.
using Given = std::vector<std::pair<std::string, bool>>;

void refuse_together(const std::string& option, bool given, const Given& others) {
  if (!given) return;
  for (const auto& [other, other_given] : others) {
    if (other_given) throw ConfigError("option " + option + ": cannot go together with " + other);
  }
}

}  // namespace

void refuse_contradictions(const VerifyCommandOptions& options) {
  const Given selecting = {{"--check", !options.check.empty()},
                           {"--skip", !options.skip.empty()},
                           {"--require", !options.require.empty()},
                           {"--strict", options.strict},
                           {"--quick", options.quick},
                           {"--fault", options.fault.has_value()},
                           {"--picture", options.picture.has_value()}};
  Given running = selecting;
  running.insert(running.end(), {{"--self-test", options.self_test},
                                 {"--sweep", !options.sweep.empty()},
                                 {"--json", options.json.has_value()},
                                 {"--junit", options.junit.has_value()},
                                 {"--verbose", options.verbose},
                                 {"--max-memory", options.common.max_memory.has_value()}});
  Given anything = running;
  anything.insert(anything.end(), {{"CONFIG", !options.configs.empty()}, {"--set", !options.common.set_words.empty()}});
  anything.emplace_back("--list-checks", options.list_checks);
  anything.emplace_back("--list-faults", options.list_faults);
  refuse_together("--explain", options.explain.has_value(), anything);
  refuse_together("--list-checks", options.list_checks, running);
  refuse_together("--list-faults", options.list_faults, running);
  refuse_together("--list-faults", options.list_faults, {{"--list-checks", options.list_checks}});
  refuse_together("--self-test", options.self_test, selecting);
  if (options.json == "-" && options.junit == "-") {
    throw ConfigError("option --junit: standard output is taken by --json -, expected a file");
  }
  if (options.picture == "-") throw ConfigError("option --picture: expected a file, a picture is not printed");
}

VerifyTask read_task(const VerifyCommandOptions& options) {
  VerifyTask task;
  task.selection.only = parse_check_names("--check", options.check);
  task.selection.skip = parse_check_names("--skip", options.skip);
  task.selection.quick = options.quick;
  task.required = parse_check_names("--require", options.require);
  task.strict = options.strict;
  task.self_test = options.self_test;
  task.fault = options.fault;
  task.max_memory = max_memory_bytes(options.common);
  refuse_unselected(task.required, task.selection, options.picture.has_value());
  if (options.fault) refuse_unknown_fault(*options.fault);
  return task;
}

void check_outputs(const VerifyCommandOptions& options, const std::vector<PlannedRun>& planned) {
  if (options.picture && planned.size() > 1) {
    throw ConfigError("option --picture: draws one run, expected one CONFIG and no --sweep of several values, got " +
                      std::to_string(planned.size()) + " runs");
  }
  if (options.picture && planned.front().config) check_picture_size(planned.front().config->T);
  std::vector<std::filesystem::path> inputs;
  for (const PlannedRun& run : planned) {
    if (run.config) {
      const std::vector<std::filesystem::path> files = files_read(*run.config);
      inputs.insert(inputs.end(), files.begin(), files.end());
    } else {
      inputs.emplace_back(run.source);
    }
  }
  std::vector<OutputFile> outputs;
  if (options.json) outputs.push_back({"--json", *options.json});
  if (options.junit) outputs.push_back({"--junit", *options.junit});
  if (options.picture) outputs.push_back({"--picture", *options.picture});
  refuse_overwriting(outputs, inputs);
  for (const auto* path : {&options.json, &options.junit, &options.picture}) check_output_file(*path);
}

}  // namespace attn
