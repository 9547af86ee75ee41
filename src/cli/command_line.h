// Words to options: which command was named, and its options bound to plain variables. CLI11 splits the
// words, inside command_line.cpp only; every text that a user sees is ours.
// Here is no number and no check name: values stay words, the commands read them (config_options.h).
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_status.h"

namespace attn {

/// What a command works with. Results go to `out`, which reaches the real standard output whole, or not at all, but for
/// what send() has sent ahead.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool color = false;            ///< standard output is a terminal, and the user has nothing against colour.
  bool err_is_terminal = false;  ///< then a progress line is welcome.
  std::function<void()> send{};  ///< sends what is in `out` so far: the finished parts of long work.
};

using Action = std::function<ExitStatus(Streams&)>;

/// One option or argument, as the help shows it.
struct OptionSpec {
  std::string names;       ///< "--json" or "-o,--output"; for an argument its name, "CONFIG".
  std::string value_name;  ///< "FILE"; empty for a flag.
  std::string help;        ///< may hold line breaks.

  std::vector<std::string> all_names() const;  ///< "-o,--output": {"-o", "--output"}.
};

/// Every command has the first and the last, the program itself the first two.
inline const OptionSpec kHelpSpec{"-h,--help", "", "print this"};
inline const OptionSpec kVersionSpec{"--version", "", "print the versions of this program and of LibTorch"};
inline const OptionSpec kDebugSpec{"--debug", "", "after an error, print all that is known about its cause"};

/// What a help tells beside the options.
struct HelpTexts {
  std::string purpose;                ///< one line.
  std::string details;                ///< a paragraph.
  std::vector<std::string> examples;  ///< command lines.
  std::string exit_statuses;          ///< what they mean here, a line each.
};

/// One command. Targets are filled when the words are parsed, before the action runs; they must live as long.
class Command {
 public:
  Command(std::string name, HelpTexts texts) : name_(std::move(name)), texts_(std::move(texts)) {}

  void add_flag(const std::string& names, bool& target, const std::string& help);

  /// An option with a value, given at most once.
  void add_value(const std::string& names, const std::string& value_name, std::optional<std::string>& target,
                 const std::string& help);

  /// An option with a value, given any number of times; the words are kept in order.
  void add_values(const std::string& names, const std::string& value_name, std::vector<std::string>& target,
                  const std::string& help);

  /// A word without a dash. A command has at most one of these, or one list of them.
  void add_argument(const std::string& name, std::optional<std::string>& target, const std::string& help);

  /// Any number of words without a dash, kept in order, wherever they stand between the options.
  void add_arguments(const std::string& name, std::vector<std::string>& target, const std::string& help);

  void set_action(Action action) { action_ = std::move(action); }

  const std::string& name() const { return name_; }
  const HelpTexts& texts() const { return texts_; }
  const std::vector<OptionSpec>& options() const { return options_; }
  const std::optional<OptionSpec>& argument() const { return argument_; }
  bool takes_many_arguments() const { return many_arguments_; }
  const Action& action() const { return action_; }

  /// What --help prints.
  std::string help() const;

  /// Fill the target of options()[index], or of the argument, from the words that were given for it.
  void receive(std::size_t index, const std::vector<std::string>& words) const { receivers_[index](words); }
  void receive_argument(const std::vector<std::string>& words) const { argument_receiver_(words); }

 private:
  using Receiver = std::function<void(const std::vector<std::string>& words)>;

  std::string name_;
  HelpTexts texts_;
  std::vector<OptionSpec> options_;
  std::vector<Receiver> receivers_;  ///< parallel to options_.
  std::optional<OptionSpec> argument_;
  Receiver argument_receiver_;
  bool many_arguments_ = false;
  Action action_;
};

/// The program's commands.
class CommandLine {
 public:
  /// `version`: what --version prints, asked for only then.
  CommandLine(std::string program, HelpTexts texts, std::function<std::string()> version);

  /// A new command; -h, --help and --debug are there already.
  Command& add_command(const std::string& name, HelpTexts texts);

  /// Finds the command, fills its targets, and returns what to do: its action, or printing a help or the version.
  /// `help` and `help COMMAND` are --help and COMMAND --help.
  /// Throws ConfigError, one line, for anything else: unknown word (with the nearest known one), missing or empty
  /// value, an option given twice.
  Action parse(int argc, const char* const* argv);

  /// Was --debug given? Known after parse(), also when that threw.
  bool debug() const { return debug_; }

  /// What `attn-cli --help` prints.
  std::string help() const;

 private:
  /// `words` begins with "help".
  Action help_action(const std::vector<std::string>& words) const;
  std::vector<std::string> command_names() const;

  std::string program_;
  HelpTexts texts_;
  std::function<std::string()> version_;
  std::vector<std::unique_ptr<Command>> commands_;
  bool debug_ = false;
};

}  // namespace attn
