// `--sweep KEY=V1,V2,...`: one config, run once for each value. Called by `cli`.
#pragma once

#include <string>
#include <vector>

namespace attn {

/// Most combinations that a sweep may have: more is a slip of the keyboard, not a wish.
inline constexpr std::size_t kMaxSweepRuns = 10'000;

/// For each run the words "KEY=VALUE" that it has from the sweeps, as load_config() takes them; the last sweep changes
/// fastest. Without a sweep one run without a word. VALUE is read as that of --set: commas inside quotes, brackets and
/// braces part no values.
/// Throws ConfigError: no `=`, no key, an empty or repeated value, a key that --set or another sweep gives too, more
/// than kMaxSweepRuns runs.
std::vector<std::vector<std::string>> sweep_combinations(const std::vector<std::string>& sweep_words,
                                                         const std::vector<std::string>& set_words);

}  // namespace attn
