// Random configs of layers, reproducible from a number, and printed so that a failing one can be run by hand.
#pragma once

#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "config/config_file.h"
#include "config/run_config.h"

namespace attn {

/// Whole numbers from a seed, the same on every platform (distributions of the standard library are not).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}

  /// From `least` to `most`, both included.
  std::int64_t whole(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(std::int64_t n) { return whole(1, n) == 1; }
  /// From [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::string word(const std::vector<std::string>& words) {
    return words[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(words.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

/// A config as words for --set.
struct RandomConfig {
  std::vector<std::string> words;
  RunConfig run;

  std::string command() const {
    std::string text = "attn-cli verify";
    for (const std::string& word : words) text += " --set " + word;
    return text;
  }
};

inline RandomConfig config_of(const std::vector<std::string>& words) {
  std::istringstream no_input;
  return {words, load_config(std::nullopt, no_input, words)};
}

/// Any layer: every module, layout and size up to `longest` tokens; `dtypes` are equally likely.
inline RandomConfig random_config(std::uint64_t seed, const std::vector<std::string>& dtypes, std::int64_t longest) {
  Draws draws(seed);
  const bool single_head = draws.one_in(6);
  const std::int64_t H = single_head ? 1 : draws.whole(1, 6);
  const std::int64_t d_k = draws.whole(1, 9);
  const std::int64_t d_model = draws.one_in(3) ? draws.whole(2, 24) : H * d_k;
  const std::int64_t T = draws.one_in(4) ? draws.whole(1, 4) : draws.whole(2, longest);
  const auto set = [](const std::string& key, std::int64_t value) { return key + "=" + std::to_string(value); };
  return config_of({set("B", draws.whole(1, 4)), set("T", T), set("d_model", d_model), set("H", H), set("d_k", d_k),
                    std::string("module=") + (single_head ? "single-head" : "multi-head"),
                    "qkv=" + draws.word({"fused", "fused-per-head", "separate"}),
                    "bias=" + draws.word({"true", "false"}), "causal=" + draws.word({"true", "true", "false"}),
                    "dropout=" + draws.word({"0", "0", "0.1", "0.25", "0.5"}), "dtype=" + draws.word(dtypes),
                    set("max_seq_len", T + draws.whole(0, 8)), set("seed", draws.whole(0, 1000000)), "threads=1"});
}

}  // namespace attn
