#include "cli/verify_runs.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/failure.h"
#include "cli/model_notes.h"
#include "config/config_file.h"
#include "config/config_sweep.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/memory_estimate.h"
#include "files/strict_json.h"
#include "files/whole_file.h"

namespace attn {
namespace {

constexpr const char* kNoFile = "--set";  // what RunConfig calls its source without a file

/// The configs in a folder. Throws ConfigError when there is none, IoError when it cannot be read.
std::vector<std::string> configs_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    if (path.extension() == ".json" && path.filename().native().front() != '.') names.push_back(path.native());
  }
  if (error) throw IoError(printable(folder.native()) + ": cannot be read: " + error.message());
  if (names.empty())
    throw ConfigError(printable(folder.native()) + ": no *.json file in this folder, expected configs");
  std::sort(names.begin(), names.end());
  return names;
}

/// Standard input can be read once only, but a sweep needs it for each of its runs.
class ConfigLoader {
 public:
  ConfigLoader(const std::vector<std::string>& set_words, std::istream& in) : set_words_(set_words), in_(in) {}

  RunConfig load(const std::string& source, const std::vector<std::string>& sweep) {
    if (source == kNoFile) return load_config(std::nullopt, in_, set_words_, sweep);
    if (source != "-") return load_config(source, in_, set_words_, sweep);
    if (!text_) text_ = read_whole_stream(in_, source, kMaxJsonBytes);
    return parse_config(*text_, source, "", set_words_, sweep);
  }

 private:
  const std::vector<std::string>& set_words_;
  std::istream& in_;
  std::optional<std::string> text_;
};

/// In front of a result's own notes.
void put_first(std::vector<std::string>& notes, const std::vector<std::string>& first) {
  notes.insert(notes.begin(), first.begin(), first.end());
}

PlannedRun planned_failure(const std::string& source) { return {source, {}, std::nullopt, std::current_exception()}; }

void plan_config(std::vector<PlannedRun>& runs, ConfigLoader& loader, const std::string& source,
                 const std::vector<std::vector<std::string>>& combinations) {
  std::vector<std::string> last_notes;
  for (const std::vector<std::string>& sweep : combinations) {
    PlannedRun run{source, sweep, std::nullopt, nullptr};
    try {
      run.config = loader.load(source, sweep);
      // Of one config the runs of a sweep would all say the same.
      if (const std::vector<std::string> notes = model_notes(*run.config); notes == last_notes) {
        run.config->origins = {};
      } else {
        last_notes = notes;
      }
    } catch (const Error&) {
      run.failure = std::current_exception();
    }
    runs.push_back(std::move(run));
  }
}

}  // namespace

std::vector<PlannedRun> plan_runs(const std::vector<std::string>& configs, const std::vector<std::string>& set_words,
                                  const std::vector<std::string>& sweep_words, std::istream& in) {
  const std::vector<std::vector<std::string>> combinations = sweep_combinations(sweep_words, set_words);
  if (std::count(configs.begin(), configs.end(), "-") > 1) {
    throw ConfigError("standard input (-) is given more than once, expected once");
  }
  if (configs.empty() && set_words.empty() && sweep_words.empty()) {
    throw ConfigError(
        "no config given, expected CONFIG (a JSON file, a folder of them, or - for standard input) or "
        "--set KEY=VALUE");
  }
  ConfigLoader loader(set_words, in);
  std::vector<PlannedRun> runs;
  if (configs.empty()) plan_config(runs, loader, kNoFile, combinations);
  for (const std::string& word : configs) {
    std::error_code error;
    if (word == "-" || !std::filesystem::is_directory(word, error)) {
      plan_config(runs, loader, word, combinations);
      continue;
    }
    try {
      for (const std::string& file : configs_in(word)) plan_config(runs, loader, file, combinations);
    } catch (const Error&) {
      runs.push_back(planned_failure(word));
    }
  }
  return runs;
}

void require_checks(VerifyResult& result, const std::vector<std::string>& required, bool strict) {
  for (CheckResult& check : result.checks) {
    if (check.status != CheckStatus::kNotApplicable) continue;
    const bool is_required = std::find(required.begin(), required.end(), check.name) != required.end();
    if (!strict && !is_required) continue;
    check.status = CheckStatus::kFail;
    check.detail = "required, but does not apply: " + check.detail;
  }
}

VerifyRun carry_out(const PlannedRun& planned, const VerifyTask& task, const ProgressText& progress) {
  if (!planned.config) std::rethrow_exception(planned.failure);
  const auto number_of = [](std::size_t index, std::size_t total) {
    return " (" + std::to_string(index + 1) + " of " + std::to_string(total) + ")";
  };
  const RunConfig& config = *planned.config;
  VerifyRun run{planned.source, planned.sweep, task.selection.quick, RunError{}};
  progress("building the layer");
  refuse_if_too_large(config, Purpose::kVerify, task.max_memory);
  if (task.self_test) {
    SelfTestResult result = self_test(config, [&](const std::string& name, std::size_t index, std::size_t total) {
      progress("fault " + name + number_of(index, total));
    });
    put_first(result.notes, model_notes(config));
    run.outcome = std::move(result);
    return run;
  }
  VerifyOptions options = task.selection;
  options.progress = [&](const std::string& name, std::size_t index, std::size_t total) {
    progress("check " + name + number_of(index, total));
  };
  VerifyResult result = task.fault ? verify_fault(config, *task.fault, options) : verify_attention(config, options);
  require_checks(result, task.required, task.strict);
  put_first(result.notes, model_notes(config));
  run.outcome = std::move(result);
  return run;
}

VerifyRun failed_run(const PlannedRun& planned, const std::exception_ptr& failure) {
  const Failure described = describe(failure);
  return {planned.source, planned.sweep, false, RunError{described.text, static_cast<int>(described.status)}};
}

}  // namespace attn
