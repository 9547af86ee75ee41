// Random configs of layers, reproducible from a number, and printed so that a failing one can be run by hand.
#pragma once

#include <algorithm>
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
    for (const std::string& word : words) text += " --set '" + word + "'";
    return text;
  }
};

inline RandomConfig config_of(const std::vector<std::string>& words) {
  std::istringstream no_input;
  return {words, load_config(std::nullopt, no_input, words)};
}

/// The choices of one random config that others depend on.
struct RandomLayer {
  std::int64_t B = 1, T = 1, T_k = 1, H = 1, d_k = 1;
  bool single_head = false, memory = false, causal = true;
};

inline std::string set_word(const std::string& key, std::int64_t value) { return key + "=" + std::to_string(value); }

inline std::string in_brackets(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "[" : ",") + std::to_string(number);
  return text + "]";
}

/// Rows of 0 and 1, (T, T_k); seldom all that a query may see is hidden.
inline std::string random_rows(Draws& draws, const RandomLayer& layer) {
  std::string text;
  for (std::int64_t i = 0; i < layer.T; ++i) {
    std::vector<std::int64_t> row;
    for (std::int64_t j = 0; j < layer.T_k; ++j) row.push_back(draws.one_in(3) ? 0 : 1);
    text += (text.empty() ? "[" : ",") + in_brackets(row);
  }
  return text + "]";
}

inline std::string random_rope(Draws& draws) {
  const std::string original = R"("original_max_seq_len":)" + std::to_string(draws.whole(4, 64));
  std::string scaling;
  switch (draws.whole(0, 5)) {
    case 0:
      scaling = R"(,"scaling":{"kind":"linear","factor":)" + draws.word({"2", "4", "0.5"}) + "}";
      break;
    case 1:
      scaling = R"(,"scaling":{"kind":"llama3","factor":8,)" + original + "}";
      break;
    case 2:
      scaling = R"(,"scaling":{"kind":"yarn","factor":4,)" + original + "}";
      break;
    default:
      break;
  }
  return R"(rope={"style":)" + draws.word({"\"half\"", "\"adjacent\""}) + R"(,"theta":)" +
         draws.word({"10000", "10000", "500000", "100"}) + scaling + "}";
}

/// A mask of one's own. Those that open the future come without `causal`.
inline void add_random_mask(Draws& draws, RandomLayer& layer, std::vector<std::string>& words) {
  if (layer.memory) {
    words.push_back("mask=" + random_rows(draws, layer));
    return;
  }
  switch (draws.whole(0, 4)) {
    case 0:
      layer.causal = false;
      words.emplace_back("mask=bidirectional");
      break;
    case 1:
      layer.causal = false;
      words.push_back(R"(mask={"kind":"prefix","length":)" + std::to_string(draws.whole(1, layer.T)) + "}");
      break;
    case 2: {
      const std::int64_t first = draws.whole(1, layer.T);
      std::vector<std::int64_t> lengths{first};
      if (first < layer.T) lengths.push_back(draws.whole(1, layer.T - first));
      words.push_back(R"(mask={"kind":"document","lengths":)" + in_brackets(lengths) + "}");
      break;
    }
    case 3:
      words.push_back(R"(mask={"kind":"dilated","stride":)" + std::to_string(draws.whole(1, 4)) + "}");
      break;
    default:
      words.push_back("mask=" + random_rows(draws, layer));
  }
}

/// What today's models have beside the plain layer, each now and then.
inline void add_random_features(Draws& draws, RandomLayer& layer, std::vector<std::string>& words) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t H_kv = 1; H_kv <= layer.H; ++H_kv) {
    if (layer.H % H_kv == 0) divisors.push_back(H_kv);
  }
  if (draws.one_in(2)) {
    const auto last = static_cast<std::int64_t>(divisors.size()) - 1;
    words.push_back(set_word("H_kv", divisors[static_cast<std::size_t>(draws.whole(0, last))]));
  }
  if (!layer.memory && layer.d_k % 2 == 0 && draws.one_in(2)) words.push_back(random_rope(draws));
  if (!layer.memory && draws.one_in(4)) words.push_back(set_word("window", draws.whole(1, layer.T + 2)));
  if (draws.one_in(3)) add_random_mask(draws, layer, words);
  if (draws.one_in(4) && layer.d_k > 1) words.emplace_back("qk_norm=true");
  if (draws.one_in(5)) words.push_back("scale=" + draws.word({"0.1", "0.3", "1", "2"}));
  if (!layer.memory && draws.one_in(5)) words.emplace_back("alibi=true");
  if (draws.one_in(4)) {
    words.emplace_back("engine=sdpa");
  } else {
    if (draws.one_in(4)) words.push_back("softcap=" + draws.word({"0.5", "5", "50"}));
    if (draws.one_in(4)) words.emplace_back("sink=true");
  }
  if (draws.one_in(3)) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < layer.B; ++b) lengths.push_back(draws.whole(1, layer.T_k));
    words.push_back("padding=" + draws.word({"left", "right"}));
    words.push_back("lengths=" + in_brackets(lengths));
  }
  if (layer.causal && !layer.memory && layer.T > 1 && draws.one_in(4)) {
    const std::int64_t chunk = draws.whole(1, std::min<std::int64_t>(3, layer.T - 1));
    const std::int64_t steps = draws.whole(1, (layer.T - 1) / chunk);
    words.push_back(R"(cache={"prefill":)" + std::to_string(layer.T - steps * chunk) + R"(,"steps":)" +
                    std::to_string(steps) + R"(,"chunk":)" + std::to_string(chunk) + "}");
  }
}

/// Any layer: every module, layout, feature and size up to `longest` tokens; `dtypes` are equally likely.
inline RandomConfig random_config(std::uint64_t seed, const std::vector<std::string>& dtypes, std::int64_t longest) {
  Draws draws(seed);
  RandomLayer layer;
  layer.single_head = draws.one_in(6);
  layer.memory = draws.one_in(6);
  layer.H = layer.single_head ? 1 : draws.whole(1, 6);
  layer.d_k = draws.whole(1, 9);
  layer.B = draws.whole(1, 4);
  layer.T = draws.one_in(4) ? draws.whole(1, 4) : draws.whole(2, longest);
  layer.T_k = layer.memory ? draws.whole(1, longest) : layer.T;
  layer.causal = !layer.memory && !draws.one_in(3);
  const std::int64_t d_model = draws.one_in(3) ? draws.whole(2, 24) : layer.H * layer.d_k;
  std::vector<std::string> words{
      set_word("B", layer.B),
      set_word("T", layer.T),
      set_word("d_model", d_model),
      set_word("H", layer.H),
      set_word("d_k", layer.d_k),
      std::string("module=") + (layer.single_head ? "single-head" : "multi-head"),
      "qkv=" + (layer.memory ? "separate" : draws.word({"fused", "fused-per-head", "separate"})),
      "bias=" + draws.word({"true", "false"}),
      "dropout=" + draws.word({"0", "0", "0.1", "0.25", "0.5"}),
      "dtype=" + draws.word(dtypes),
      set_word("max_seq_len", std::max(layer.T, layer.T_k) + draws.whole(0, 8)),
      set_word("seed", draws.whole(0, 1000000)),
      "threads=1"};
  if (layer.memory) words.push_back(R"(memory={"T_k":)" + std::to_string(layer.T_k) + "}");
  if (!draws.one_in(5)) add_random_features(draws, layer, words);  // else the plain layer
  words.push_back(std::string("causal=") + (layer.causal ? "true" : "false"));
  return config_of(words);
}

}  // namespace attn
