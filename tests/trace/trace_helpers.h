// Configs and look-ups that the tests of this room share.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_file.h"
#include "trace/attention_trace.h"

namespace attn::test {

/// A config from `--set` words alone, as the command line would make it.
inline RunConfig config_of(const std::vector<std::string>& set_words) {
  return parse_config("{}", "test", ".", set_words);
}

/// B 2, T 5, d_model 12, H 3, and what `more` says.
inline RunConfig small_config(std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"B=2", "T=5", "d_model=12", "H=3"};
  words.insert(words.end(), more.begin(), more.end());
  return config_of(words);
}

/// The step of this pass and name, which must be there exactly once.
inline const TraceStep& find_step_of(const AttentionTrace& trace, std::string_view pass, std::string_view name) {
  const TraceStep* found = nullptr;
  for (const TraceStep& step : trace.steps) {
    if (step.pass != pass || step.name != name) continue;
    if (found != nullptr) throw std::runtime_error(std::string(name) + " is in the trace twice");
    found = &step;
  }
  if (found == nullptr) throw std::runtime_error(std::string(name) + " is not in the trace");
  return *found;
}

/// Names of a pass in order; "" for every pass but the forward one.
inline std::vector<std::string> names_of(const AttentionTrace& trace, std::string_view pass) {
  std::vector<std::string> names;
  for (const TraceStep& step : trace.steps) {
    if (step.pass == pass || (pass.empty() && step.pass != "forward")) names.push_back(step.name);
  }
  return names;
}

}  // namespace attn::test
