// Configs and look-ups that the tests of this room share.
#pragma once

#include <cstdint>
#include <map>
#include <sstream>
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

/// "(B, T, 3*H*d_k)" with the config's numbers. A call of a cached run has its own T_q and T_k.
inline std::vector<std::int64_t> evaluate(std::string symbolic, const RunConfig& config, const ForwardCall& call) {
  const std::int64_t groups = config.attention.H + 2 * config.attention.H_kv();
  if (const std::size_t at = symbolic.find("(H + 2*H_kv)"); at != std::string::npos) symbolic.replace(at, 12, "Hs");
  std::map<std::string, std::int64_t> letters = {{"B", config.B},
                                                 {"T", config.T},
                                                 {"T_q", call.queries},
                                                 {"T_k", call.keys},
                                                 {"H_kv", config.attention.H_kv()},
                                                 {"Hs", groups},
                                                 {"d_model", config.attention.d_model},
                                                 {"H", config.attention.H},
                                                 {"d_k", config.attention.d_k()},
                                                 {"max_seq_len", config.attention.max_seq_len},
                                                 {"3", 3}};
  if (config.embedding) letters["vocab_size"] = config.embedding->vocab_size;
  std::vector<std::int64_t> shape;
  std::istringstream axes(symbolic.substr(1, symbolic.size() - 2));
  for (std::string axis; std::getline(axes >> std::ws, axis, ',');) {
    std::int64_t size = 1;
    std::istringstream factors(axis);
    for (std::string factor; std::getline(factors, factor, '*');) size *= letters.at(factor);
    shape.push_back(size);
  }
  return shape;
}

}  // namespace attn::test
