#include "cli/verify_lists.h"

#include <algorithm>
#include <ostream>

#include "checks/check_list.h"
#include "checks/faults/faults.h"
#include "core/error.h"
#include "core/text.h"
#include "report/table.h"

namespace attn {
namespace {

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void print_entries(std::ostream& out, const std::vector<std::string>& names, const std::vector<std::string>& words) {
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, display_width(name));
  for (std::size_t index = 0; index < names.size(); ++index) {
    out << padded(names[index], width) << "  " << words[index] << '\n';
  }
}

}  // namespace

void print_check_list(std::ostream& out, const std::optional<RunConfig>& config) {
  std::vector<std::string> names;
  std::vector<std::string> words;
  for (const CheckInfo& info : check_list()) {
    if (config && !why_ruled_out(info.name, *config).empty()) continue;
    names.push_back(info.name);
    words.push_back(info.question + (info.needs == "-" ? "" : " (needs " + info.needs + ")"));
  }
  print_entries(out, names, words);
}

void print_fault_list(std::ostream& out, const std::optional<RunConfig>& config) {
  std::vector<std::string> names;
  std::vector<std::string> words;
  for (const FaultInfo& info : fault_list()) {
    if (config && why_not_applicable(info.name, *config)) continue;
    names.push_back(info.name);
    words.push_back(info.what);
  }
  print_entries(out, names, words);
}

void explain_check(std::ostream& out, const std::string& name) {
  const std::vector<CheckInfo>& checks = check_list();
  const auto found =
      std::find_if(checks.begin(), checks.end(), [&](const CheckInfo& info) { return info.name == name; });
  if (found == checks.end()) throw ConfigError("option --explain: " + unknown_word("check", name, check_names()));

  constexpr std::size_t kIndent = 2;
  out << found->name << "\n\n" << wrapped(found->question, kIndent);
  if (!found->explanation.empty()) out << '\n' << wrapped(found->explanation, kIndent);
  out << "\n  needs   " << (found->needs == "-" ? "nothing beside the output" : found->needs) << '\n';

  std::vector<std::string> faults;
  for (const FaultInfo& fault : fault_list()) {
    if (is_one_of(name, fault.caught_by)) faults.push_back(fault.name);
  }
  constexpr std::size_t kWordIndent = 10;
  const std::string words = faults.empty() ? "no planted fault names it" : join(faults);
  out << "  faults  " << wrapped(words, kWordIndent).substr(kWordIndent);
}

}  // namespace attn
