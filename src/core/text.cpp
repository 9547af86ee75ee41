#include "core/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <system_error>

#include "core/character_width.h"

namespace attn {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Decoded {
  char32_t code_point = kReplacement;
  std::size_t length = 1;
  bool valid = false;
};

// The character that starts at `offset`. RFC 3629, section 4: which second bytes may follow which first byte.
Decoded decode_at(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};

  std::size_t length = 0;
  unsigned char second_low = 0x80;
  unsigned char second_high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) second_low = 0xA0;   // else it is an overlong form
    if (first == 0xED) second_high = 0x9F;  // else it is a surrogate
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) second_low = 0x90;
    if (first == 0xF4) second_high = 0x8F;  // else it is beyond U+10FFFF
  }
  if (length == 0 || text.size() - offset < length) return {};
  if (byte(1) < second_low || byte(1) > second_high) return {};

  char32_t code_point = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code_point = (code_point << 6) | (byte(i) & 0x3F);
  }
  return {code_point, length, true};
}

void append_hex(std::string& out, std::string_view prefix, std::uint32_t value, std::size_t width) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += prefix;
  for (std::size_t i = width; i-- > 0;) out += kDigits[(value >> (4 * i)) & 0xF];
}

// C1 controls, line and paragraph separators, and the marks that change the direction of the text around them.
bool disturbs_terminal(char32_t c) {
  return (c >= 0x80 && c <= 0x9F) || c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

void append_printable(std::string& out, std::string_view text, std::size_t offset, const Decoded& decoded) {
  const auto byte = static_cast<unsigned char>(text[offset]);
  if (!decoded.valid) {
    append_hex(out, "\\x", byte, 2);
  } else if (byte == '\n') {
    out += "\\n";
  } else if (byte == '\t') {
    out += "\\t";
  } else if (byte == '\r') {
    out += "\\r";
  } else if (byte < 0x20 || byte == 0x7F) {
    append_hex(out, "\\x", byte, 2);
  } else if (disturbs_terminal(decoded.code_point)) {
    append_hex(out, "\\u", decoded.code_point, 4);
  } else {
    out += text.substr(offset, decoded.length);
  }
}

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Optimal string alignment: insertions, deletions, changes and swaps of neighbours, none of them edited twice.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({row[j - 1] + 1, last[j] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

template <typename Item, typename ToWord>
std::string first_in_words(const std::vector<Item>& items, const ToWord& to_word) {
  constexpr std::size_t kMostListed = 16;
  std::vector<std::string> words;
  for (const Item& item : items) {
    if (words.size() == kMostListed) {
      words.emplace_back("...");
      break;
    }
    words.push_back(to_word(item));
  }
  return join(words);
}

std::string format_double(double value, std::chars_format format, int precision) {
  std::array<char, 512> buffer{};  // to_chars knows no locale; the longest fixed double has 309 digits before the point
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision);
  return std::string(buffer.data(), result.ptr);
}

}  // namespace

std::optional<std::string> closest_match(std::string_view word, const std::vector<std::string>& choices) {
  const std::string lower_word = lower_case(word);
  const std::string* closest = nullptr;
  std::size_t closest_distance = 0;
  for (const std::string& choice : choices) {
    const std::size_t longer = std::max(word.size(), choice.size());
    const std::size_t shorter = std::min(word.size(), choice.size());
    if (3 * (longer - shorter) > longer) continue;  // the distance is at least that; spares work on a huge word
    const std::size_t distance = edit_distance(lower_word, lower_case(choice));
    if (3 * distance > longer) continue;
    if (closest == nullptr || distance < closest_distance || (distance == closest_distance && choice == word)) {
      closest = &choice;
      closest_distance = distance;
    }
  }
  if (closest == nullptr) return std::nullopt;
  return *closest;
}

std::string unknown_word(std::string_view kind, std::string_view word, const std::vector<std::string>& choices) {
  std::string message = "unknown ";
  message += kind;
  message += ' ';
  message += in_quotes(word);
  if (const auto meant = closest_match(word, choices)) return message + "; did you mean " + in_quotes(*meant) + "?";
  constexpr std::size_t kMostNamed = 30;  // more would be no help in an error's one line
  if (choices.size() > kMostNamed) return message + "; none of the " + std::to_string(choices.size()) + " is near it";
  return message + "; known: " + join(choices);
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) joined += separator;
    joined += words[i];
  }
  return joined;
}

std::string join_first(const std::vector<std::string>& words) {
  return first_in_words(words, [](const std::string& word) { return word; });
}

std::string join_first(const std::vector<std::int64_t>& numbers) {
  return first_in_words(numbers, [](std::int64_t number) { return std::to_string(number); });
}

std::string in_quotes(std::string_view text, std::size_t max_length) {
  std::string out = "\"";
  std::size_t characters = 0;
  for (std::size_t offset = 0; offset < text.size(); ++characters) {
    if (characters == max_length) {
      out += "...";
      break;
    }
    const Decoded decoded = decode_at(text, offset);
    if (text[offset] == '"' || text[offset] == '\\') out += '\\';
    append_printable(out, text, offset, decoded);
    offset += decoded.length;
  }
  return out + '"';
}

std::string shortened(std::string_view text, std::size_t max_length) {
  constexpr std::string_view kDots = "...";
  std::string out;
  std::size_t characters = 0;
  std::size_t cut = 0;  // bytes of `out` that leave room for the dots
  for (std::size_t offset = 0; offset < text.size(); ++characters) {
    if (characters == max_length) return out.substr(0, cut).append(kDots);
    if (characters + kDots.size() <= max_length) cut = out.size();
    const Decoded decoded = decode_at(text, offset);
    append_printable(out, text, offset, decoded);
    offset += decoded.length;
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const Decoded decoded = decode_at(text, offset);
    append_printable(out, text, offset, decoded);
    offset += decoded.length;
  }
  return out;
}

std::optional<std::int64_t> parse_int64(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::string format_shape(const std::vector<std::int64_t>& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + ")";
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.5) {  // what would be shown as 1024 belongs to the next unit
    value /= 1024;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return format_double(value, std::chars_format::fixed, decimals) + " " + std::string(kUnits[unit]);
}

std::string format_count(std::uint64_t count) {
  std::string out = std::to_string(count);
  for (std::size_t end = out.size(); end > 3; end -= 3) out.insert(end - 3, 1, ',');
  return out;
}

std::string format_number(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";  // also minus zero
  return format_double(value, std::chars_format::general, std::clamp(digits, 1, 17));
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();) {
    const Decoded decoded = decode_at(text, offset);
    if (!decoded.valid) return offset;
    offset += decoded.length;
  }
  return std::nullopt;
}

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> points;
  for (std::size_t offset = 0; offset < text.size();) {
    const Decoded decoded = decode_at(text, offset);
    points.push_back(decoded.code_point);
    offset += decoded.length;
  }
  return points;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char32_t point : code_points(text)) width += static_cast<std::size_t>(character_width(point));
  return width;
}

std::string padded(std::string_view text, std::size_t width, bool align_right) {
  const std::size_t taken = display_width(text);
  const std::string spaces(taken < width ? width - taken : 0, ' ');
  return align_right ? spaces + std::string(text) : std::string(text) + spaces;
}

}  // namespace attn
