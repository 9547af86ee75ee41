// Text to token ids and labels, without any model: enough to see a real sentence in a trace or a heatmap.
// It sits in `config` because B and T of a text config follow from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// The tokens of one batch: ids for the embedding, labels for people.
struct Tokens {
  std::vector<std::vector<std::int64_t>> ids;    ///< B lists.
  std::vector<std::vector<std::string>> labels;  ///< the same shape.
  std::int64_t vocab_size = 0;                   ///< ids used are below this: 256 for bytes, the number of words.
};

/// Splits each text.
///
/// `bytes`: one token a byte; its value is the id. Labels: a printable ASCII character is itself; space, tab and line
/// ends are `<sp>` `<tab>` `<nl>` `<cr>`, other control bytes `<0x1b>`; a byte of a longer UTF-8 character is that
/// character with the byte's number in it (`é1`, `é2`), so no label is cut inside a character. Characters that are
/// invisible or move the text around them are named: `<U+202E>1`.
///
/// `words`: runs of ASCII letters, digits and non-ASCII characters, and each other visible character alone; case
/// counts. Spaces (Unicode's too) and control characters separate and vanish. Ids by first appearance over all texts.
///
/// Throws ConfigError: no text at all, or "text 2: " and its text_fault(). Texts may differ in length here.
Tokens tokenize(const TextInput& input);

/// Why a text cannot be tokenised: empty, without tokens, invalid UTF-8 (with the byte's offset). Absent: it can be.
std::optional<std::string> text_fault(std::string_view text, Tokenizer tokenizer);

}  // namespace attn
