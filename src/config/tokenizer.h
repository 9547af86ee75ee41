// Text to token ids and labels, without any model: enough to see a real sentence in a trace or a heatmap.
// It sits in `config` because B and T of a text config follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// The tokens of one batch: ids for the embedding, labels for people.
struct Tokens {
  std::vector<std::vector<std::int64_t>> ids;      ///< B lists.
  std::vector<std::vector<std::string>> labels;    ///< the same shape.
  std::int64_t vocab_size = 0;                     ///< ids used are below this: 256 for bytes, the number of words.
};

/// Splits each text. `bytes`: one token a byte, id 0 ... 255; the label of a byte that is part of a longer UTF-8
/// character is that character with its byte's number ("é1", "é2"), so no label is ever cut inside a character.
/// `words`: runs of letters, digits and non-ASCII characters, and each other visible character alone; ids by first
/// appearance over all texts; spaces separate and vanish.
/// Throws ConfigError: no text, an empty text or one without tokens, invalid UTF-8 (with the byte's offset).
Tokens tokenize(const TextInput& input);

}  // namespace attn
