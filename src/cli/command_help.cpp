// The texts of --help, made from the options that are really there.
#include <algorithm>

#include "cli/command_line.h"
#include "core/text.h"

namespace attn {
namespace {

std::string option_usage(const OptionSpec& option) {
  std::string text = join(option.all_names(), ", ");
  if (!option.value_name.empty()) text += " " + option.value_name;
  return text;
}

/// `  left   right`, where further lines of `right` are indented as its first.
void append_entry(std::string& text, const std::string& left, std::size_t width, const std::string& right) {
  std::string indented;
  for (const char letter : right) {
    indented += letter;
    if (letter == '\n') indented += std::string(width + 4, ' ');
  }
  text += "  " + padded(left, width) + "  " + indented + "\n";
}

}  // namespace

std::string Command::help() const {
  const std::string argument =
      argument_ ? " [" + argument_->names + (takes_many_arguments() ? "...]" : "]") : std::string();
  std::string text = "usage: attn-cli " + name_ + argument + " [options]\n\n";
  text += texts_.purpose + "\n";
  if (!texts_.details.empty()) text += "\n" + texts_.details + "\n";

  text += "\nexamples:\n";
  for (const std::string& example : texts_.examples) text += "  " + example + "\n";

  std::size_t width = argument_ ? argument_->names.size() : 0;
  for (const OptionSpec& option : options_) width = std::max(width, option_usage(option).size());
  text += "\noptions:\n";
  std::vector<OptionSpec> options = options_;
  options.push_back(kDebugSpec);
  options.push_back(kHelpSpec);
  if (argument_) append_entry(text, argument_->names, width, argument_->help);
  for (const OptionSpec& option : options) append_entry(text, option_usage(option), width, option.help);

  return text + "\nexit status:\n" + texts_.exit_statuses;
}

std::string CommandLine::help() const {
  std::string text = "usage: " + program_ + " COMMAND [CONFIG] [options]\n\n" + texts_.purpose + "\n\ncommands:\n";
  std::size_t width = option_usage(kHelpSpec).size();
  for (const auto& command : commands_) width = std::max(width, command->name().size());
  for (const auto& command : commands_) append_entry(text, command->name(), width, command->texts().purpose);
  text += "\nexamples:\n";
  for (const std::string& example : texts_.examples) text += "  " + example + "\n";
  text += "\noptions:\n";
  append_entry(text, option_usage(kHelpSpec), width,
               kHelpSpec.help + "; " + program_ + " COMMAND --help (or help COMMAND) tells all of a command");
  append_entry(text, option_usage(kVersionSpec), width, kVersionSpec.help);
  return text + "\n" + texts_.details + "\n\nexit status:\n" + texts_.exit_statuses;
}

}  // namespace attn
