#include "cli/command_line.h"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

std::vector<std::string> all_names(const std::vector<OptionSpec>& options) {
  std::vector<std::string> names;
  for (const OptionSpec& option : options) {
    for (std::string& name : option.all_names()) names.push_back(std::move(name));
  }
  return names;
}

bool looks_like_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

/// "--json=x" -> "--json".
std::string name_part(const std::string& word) { return word.substr(0, word.find('=')); }

/// CLI11 as we want it: no help of its own, no opinion on what is left over, every option collects its words.
void make_plain(CLI::App& app) {
  app.set_help_flag("");
  app.allow_extras(true);
}

CLI::Option* add_plain_option(CLI::App& app, const OptionSpec& spec) {
  if (spec.value_name.empty()) return app.add_flag(spec.names)->disable_flag_override();
  CLI::Option* option = app.add_option(spec.names, CLI::callback_t([](const CLI::results_t&) { return true; }));
  return option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
}

CLI::Option* add_plain_argument(CLI::App& app, const OptionSpec& spec, bool many) {
  CLI::Option* option = app.add_option(spec.names, CLI::callback_t([](const CLI::results_t&) { return true; }));
  return many ? option->expected(-1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll) : option->expected(1);
}

Action print(const std::string& text) {
  return [text](Streams& streams) { return streams.out << text, ExitStatus::kOk; };
}

/// Words that may be arguments only: those after "--". CLI11 would hand them to the program once the command has its
/// first argument, so they are kept from it. Leaves in `words` those before.
std::vector<std::string> take_words_after_dashes(std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return {};
  std::vector<std::string> after(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return after;
}

/// "--json=": CLI11 would take the next word.
void refuse_empty_values(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      throw ConfigError("option " + shortened(name_part(word)) + ": expected a value after \"=\"");
    }
  }
}

[[noreturn]] void refuse_second_argument(const std::string& word, const std::string& where) {
  throw ConfigError(where + "unexpected argument " + in_quotes(word) + ", expected one CONFIG at most");
}

[[noreturn]] void refuse_leftover(const std::vector<std::string>& leftover, const std::vector<OptionSpec>& options,
                                  const std::string& where) {
  for (const std::string& word : leftover) {
    if (looks_like_option(word)) throw ConfigError(where + unknown_word("option", name_part(word), all_names(options)));
  }
  refuse_second_argument(leftover.front(), where);
}

/// CLI11 refused the words. Which of our rules was broken is worked out here, so that no text of its own is needed.
[[noreturn]] void explain_refusal(const std::vector<std::string>& words, const std::vector<OptionSpec>& options) {
  for (const OptionSpec& option : options) {
    for (const std::string& name : option.all_names()) {
      for (const std::string& word : words) {
        if (option.value_name.empty() && word.starts_with(name + "=")) {
          throw ConfigError("option " + name + ": takes no value, got " + in_quotes(word.substr(name.size() + 1)));
        }
      }
      if (!option.value_name.empty() && words.back() == name) {
        throw ConfigError("option " + name + ": expected " + option.value_name + " after it");
      }
    }
  }
  throw ConfigError("the command line cannot be understood, see attn-cli --help");
}

/// In `--json --strict` a file name was forgotten; CLI11 would name the file "--strict". In `--json "$FILE"` a variable
/// was.
void refuse_no_values(const std::vector<std::string>& values, const OptionSpec& option,
                      const std::vector<std::string>& known_names) {
  for (const std::string& value : values) {
    if (value.empty()) {
      throw ConfigError("option " + option.all_names().back() + ": expected " + option.value_name +
                        " after it, got an empty word");
    }
    if (std::find(known_names.begin(), known_names.end(), name_part(value)) == known_names.end()) continue;
    throw ConfigError("option " + option.all_names().back() + ": expected " + option.value_name +
                      " after it, got the option " + shortened(value));
  }
}

/// A command's twin in CLI11.
struct Twin {
  CLI::App* app = nullptr;
  CLI::Option* help = nullptr;
  std::vector<CLI::Option*> options;  ///< parallel to the command's.
  CLI::Option* argument = nullptr;
};

Twin make_twin(CLI::App& app, const Command& command) {
  Twin twin;
  twin.app = app.add_subcommand(command.name());
  make_plain(*twin.app);
  twin.help = add_plain_option(*twin.app, kHelpSpec);
  add_plain_option(*twin.app, kDebugSpec);
  for (const OptionSpec& option : command.options()) twin.options.push_back(add_plain_option(*twin.app, option));
  if (command.argument())
    twin.argument = add_plain_argument(*twin.app, *command.argument(), command.takes_many_arguments());
  return twin;
}

/// Fills the command's argument from the words that stand for it.
void receive_arguments(const Command& command, const std::vector<std::string>& words) {
  if (words.empty()) return;
  const std::string where = command.name() + ": ";
  if (!command.argument()) throw ConfigError(where + "unexpected argument " + in_quotes(words.front()));
  if (words.size() > 1 && !command.takes_many_arguments()) refuse_second_argument(words[1], where);
  for (const std::string& word : words) {
    if (word.empty()) throw ConfigError(where + "expected " + command.argument()->value_name + ", got an empty word");
  }
  command.receive_argument(words);
}

Action finish(Command& command, const Twin& twin, const std::vector<std::string>& after_dashes) {
  if (twin.help->count() > 0) return print(command.help());
  std::vector<OptionSpec> known = command.options();
  known.push_back(kHelpSpec);
  known.push_back(kDebugSpec);
  const std::vector<std::string> leftover = twin.app->remaining(false);
  if (!leftover.empty()) refuse_leftover(leftover, known, command.name() + ": ");

  const std::vector<std::string> known_names = all_names(known);
  for (std::size_t index = 0; index < twin.options.size(); ++index) {
    if (twin.options[index]->count() == 0) continue;
    const OptionSpec& option = command.options()[index];
    const std::vector<std::string>& words = twin.options[index]->results();
    if (!option.value_name.empty()) refuse_no_values(words, option, known_names);
    command.receive(index, words);
  }
  std::vector<std::string> arguments;
  if (twin.argument != nullptr && twin.argument->count() > 0) arguments = twin.argument->results();
  arguments.insert(arguments.end(), after_dashes.begin(), after_dashes.end());
  receive_arguments(command, arguments);
  return command.action();
}

}  // namespace

std::vector<std::string> OptionSpec::all_names() const {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start <= names.size()) {
    const std::size_t end = std::min(names.find(',', start), names.size());
    parts.push_back(names.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

void Command::add_flag(const std::string& names, bool& target, const std::string& help) {
  options_.push_back({names, "", help});
  receivers_.push_back([&target](const std::vector<std::string>&) { target = true; });
}

void Command::add_value(const std::string& names, const std::string& value_name, std::optional<std::string>& target,
                        const std::string& help) {
  options_.push_back({names, value_name, help});
  receivers_.push_back([&target, name = options_.back().all_names().back()](const std::vector<std::string>& words) {
    if (words.size() > 1) {
      throw ConfigError("option " + name + ": given " + std::to_string(words.size()) + " times, expected once");
    }
    target = words.front();
  });
}

void Command::add_values(const std::string& names, const std::string& value_name, std::vector<std::string>& target,
                         const std::string& help) {
  options_.push_back({names, value_name, help});
  receivers_.push_back([&target](const std::vector<std::string>& words) { target = words; });
}

void Command::add_argument(const std::string& name, std::optional<std::string>& target, const std::string& help) {
  argument_ = OptionSpec{name, name, help};
  argument_receiver_ = [&target](const std::vector<std::string>& words) { target = words.front(); };
}

void Command::add_arguments(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  argument_ = OptionSpec{name, name, help};
  argument_receiver_ = [&target](const std::vector<std::string>& words) { target = words; };
  many_arguments_ = true;
}

CommandLine::CommandLine(std::string program, HelpTexts texts, std::function<std::string()> version)
    : program_(std::move(program)), texts_(std::move(texts)), version_(std::move(version)) {}

Command& CommandLine::add_command(const std::string& name, HelpTexts texts) {
  return *commands_.emplace_back(std::make_unique<Command>(name, std::move(texts)));
}

std::vector<std::string> CommandLine::command_names() const {
  std::vector<std::string> names;
  for (const auto& command : commands_) names.push_back(command->name());
  return names;
}

Action CommandLine::help_action(const std::vector<std::string>& words) const {
  if (words.size() > 2) throw ConfigError("help: expected one command at most, got " + in_quotes(words[2]) + " too");
  if (words.size() == 1 || words[1] == "--help" || words[1] == "-h") return print(help());
  for (const auto& command : commands_) {
    if (command->name() == words[1]) return print(command->help());
  }
  throw ConfigError("help: " + unknown_word("command", words[1], command_names()));
}

Action CommandLine::parse(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::vector<std::string> after_dashes = take_words_after_dashes(words);
  debug_ = std::find(words.begin(), words.end(), kDebugSpec.names) != words.end();
  if (!words.empty() && words.front() == "help") return help_action(words);
  refuse_empty_values(words);

  CLI::App app;
  make_plain(app);
  app.require_subcommand(0, 1);
  const CLI::Option* help_option = add_plain_option(app, kHelpSpec);
  const CLI::Option* version_option = add_plain_option(app, kVersionSpec);
  add_plain_option(app, kDebugSpec);
  std::vector<Twin> twins;
  std::vector<OptionSpec> every_option = {kHelpSpec, kVersionSpec, kDebugSpec};
  for (const auto& command : commands_) {
    twins.push_back(make_twin(app, *command));
    every_option.insert(every_option.end(), command->options().begin(), command->options().end());
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back.
  } catch (const CLI::Error&) {
    explain_refusal(words, every_option);
  }

  if (help_option->count() > 0) return print(help());
  if (version_option->count() > 0) {
    return [version = version_](Streams& streams) { return streams.out << version() << '\n', ExitStatus::kOk; };
  }
  const std::vector<std::string> leftover = app.remaining(false);
  for (const std::string& word : leftover) {
    if (!looks_like_option(word)) throw ConfigError(unknown_word("command", word, command_names()));
  }
  if (!leftover.empty()) refuse_leftover(leftover, {kHelpSpec, kVersionSpec}, "");
  for (std::size_t index = 0; index < twins.size(); ++index) {
    if (twins[index].app->parsed()) return finish(*commands_[index], twins[index], after_dashes);
  }
  throw ConfigError("no command given, expected " + join(command_names()) + " (attn-cli --help tells more)");
}

}  // namespace attn
