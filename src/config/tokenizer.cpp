#include "config/tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

bool in_range(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

/// Unicode's spaces and line ends (property White_Space), and the byte order mark.
bool is_space(char32_t c) {
  return in_range(c, 0x09, 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || in_range(c, 0x2000, 0x200a) ||
         in_range(c, 0x2028, 0x2029) || c == 0x202f || c == 0x205f || c == 0x3000 || c == 0xfeff;
}

bool is_control(char32_t c) { return c < 0x20 || in_range(c, 0x7f, 0x9f); }

/// Characters without ink that join, split or turn round what stands beside them.
bool is_invisible(char32_t c) {
  return is_space(c) || is_control(c) || c == 0xad || in_range(c, 0x200b, 0x200f) || in_range(c, 0x202a, 0x202e) ||
         in_range(c, 0x2060, 0x206f);
}

bool is_word_character(char32_t c) {
  return in_range(c, '0', '9') || in_range(c, 'A', 'Z') || in_range(c, 'a', 'z') || c >= 0x80;
}

std::string in_hex(const char* pattern, unsigned value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

std::string label_of_ascii(unsigned char byte) {
  switch (byte) {
    case ' ':
      return "<sp>";
    case '\t':
      return "<tab>";
    case '\n':
      return "<nl>";
    case '\r':
      return "<cr>";
    default:
      return is_control(byte) ? in_hex("<0x%02x>", byte) : std::string(1, static_cast<char>(byte));
  }
}

/// One character of valid UTF-8.
struct Character {
  std::string_view bytes;
  char32_t code = 0;
};

std::vector<Character> characters(std::string_view text) {
  std::vector<Character> result;
  std::size_t start = 0;
  for (const char32_t code : code_points(text)) {
    const std::size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    result.push_back({text.substr(start, length), code});
    start += length;
  }
  return result;
}

/// What one text becomes.
struct Pieces {
  std::vector<std::int64_t> ids;
  std::vector<std::string> labels;
};

Pieces split_bytes(std::string_view text) {
  Pieces pieces;
  for (const Character& character : characters(text)) {
    const std::string name = is_invisible(character.code) ? in_hex("<U+%04X>", static_cast<unsigned>(character.code))
                                                          : std::string(character.bytes);
    for (std::size_t i = 0; i < character.bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(character.bytes[i]);
      pieces.ids.push_back(byte);
      pieces.labels.push_back(character.bytes.size() == 1 ? label_of_ascii(byte) : name + std::to_string(i + 1));
    }
  }
  return pieces;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside_word = false;
  for (const Character& character : characters(text)) {
    const bool visible = !is_space(character.code) && !is_control(character.code);
    const bool belongs = visible && is_word_character(character.code);
    if (belongs && inside_word) {
      words.back() += character.bytes;
    } else if (visible) {
      words.emplace_back(character.bytes);
    }
    inside_word = belongs;
  }
  return words;
}

}  // namespace

std::optional<std::string> text_fault(std::string_view text, Tokenizer tokenizer) {
  if (text.empty()) return "must have at least one character, got an empty text";
  if (const auto offset = find_invalid_utf8(text))
    return "must be UTF-8, got an invalid byte at offset " + std::to_string(*offset);
  if (tokenizer == Tokenizer::kWords && split_words(text).empty()) {
    return "must have at least one word, got " + in_quotes(text);
  }
  return std::nullopt;
}

Tokens tokenize(const TextInput& input) {
  if (input.texts.empty()) throw ConfigError("text: must have at least one item, got none");
  Tokens tokens;
  std::map<std::string, std::int64_t> id_of_word;
  for (std::size_t i = 0; i < input.texts.size(); ++i) {
    const std::string& text = input.texts[i];
    if (const auto fault = text_fault(text, input.tokenizer)) {
      throw ConfigError("text " + std::to_string(i + 1) + ": " + *fault);
    }
    Pieces pieces;
    if (input.tokenizer == Tokenizer::kBytes) {
      pieces = split_bytes(text);
    } else {
      pieces.labels = split_words(text);
      for (const std::string& word : pieces.labels) {
        pieces.ids.push_back(id_of_word.emplace(word, static_cast<std::int64_t>(id_of_word.size())).first->second);
      }
    }
    tokens.ids.push_back(std::move(pieces.ids));
    tokens.labels.push_back(std::move(pieces.labels));
  }
  tokens.vocab_size = input.tokenizer == Tokenizer::kBytes ? 256 : static_cast<std::int64_t>(id_of_word.size());
  return tokens;
}

}  // namespace attn
