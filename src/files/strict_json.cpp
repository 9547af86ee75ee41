#include "files/strict_json.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

using nlohmann::json;

// `line 3, column 7` of the character at `offset`.
std::string place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::string_view row = newline == std::string_view::npos ? before : before.substr(newline + 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(1 + code_points(row).size());
}

// Reads the text for the parser and lets the handler know how far the parser has got: its own events do not say.
class TrackingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackingIterator(const char* at, const char** cursor) : at_(at), cursor_(cursor) {}
  reference operator*() const { return *at_; }
  TrackingIterator& operator++() {
    *cursor_ = ++at_;
    return *this;
  }
  bool operator==(const TrackingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const TrackingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** cursor_;
};

// Builds the document from the parser's events, and throws ConfigError where the parser alone would be lenient.
class StrictBuilder {
 public:
  StrictBuilder(std::string_view text, const std::string& source_name)
      : text_(text), source_name_(source_name), cursor_(text.data()) {}

  TrackingIterator begin() { return {text_.data(), &cursor_}; }
  TrackingIterator end() { return {text_.data() + text_.size(), &cursor_}; }
  json take() { return std::move(document_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(json::number_integer_t value) { return add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return add(value); }
  bool string(json::string_t& value) { return add(std::move(value)); }
  bool binary(json::binary_t&) { return false; }  // the parser's interface asks for it; text has none

  bool number_float(json::number_float_t value, const json::string_t& digits) {
    if (digits.find_first_of(".eE") == std::string::npos) {
      fail(text_.substr(0, read()).rfind(digits), "integer " + shortened(digits) + " does not fit in 64 bits");
    }
    return add(value);
  }

  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(json::string_t& name) {
    key_ = std::move(name);
    if (containers_.back()->contains(key_)) fail(start_of_string(), "duplicate key " + pointer());
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last_token, const json::exception& error) {
    if (dynamic_cast<const json::out_of_range*>(&error) != nullptr) {
      fail(text_.substr(0, read()).rfind(last_token), "number " + shortened(last_token) + " does not fit in a double");
    }
    // The parser says "[...] parse error at line 1, column 2: syntax error while parsing value - what; last read:
    // 'token'; expected ...". Ours keeps what comes after the place, without the token, which may be as long as the
    // file.
    std::string what = error.what();
    const std::size_t start = what.find("syntax error");
    what = start == std::string::npos ? "syntax error" : what.substr(start);
    const std::string last_read = "; last read: '" + last_token + "'";
    if (const std::size_t found = what.find(last_read); found != std::string::npos) what.erase(found, last_read.size());
    if (const std::size_t dash = what.find(" - "); dash != std::string::npos) what.replace(dash, 3, ": ");

    if (what.find("unexpected end of input") != std::string::npos) fail(text_.size(), what);
    std::size_t offset = std::max<std::size_t>(position, 1) - 1;
    constexpr std::string_view kInvalidLiteral = "invalid literal";
    if (const std::size_t found = what.find(kInvalidLiteral); found != std::string::npos) {
      while (offset > 0 && is_word_character(text_[offset - 1])) --offset;
      std::size_t end = offset + 1;
      while (end < text_.size() && is_word_character(text_[end])) ++end;
      what.insert(found + kInvalidLiteral.size(), " " + in_quotes(text_.substr(offset, end - offset), 20));
    }
    fail(offset, what);
  }

 private:
  [[noreturn]] void fail(std::size_t offset, const std::string& what) const {
    throw ConfigError(printable(source_name_) + ": " + place(text_, offset) + ": " + what);
  }

  std::size_t read() const { return static_cast<std::size_t>(cursor_ - text_.data()); }

  // Of what people write where JSON wants a literal: NaN, -Infinity, True, .5, a name without quotes.
  static bool is_word_character(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '+' ||
           c == '-' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
  }

  static std::string shortened(const std::string& digits) {
    return digits.size() <= 40 ? digits : digits.substr(0, 40) + "...";
  }

  // Of the string that the parser has just read: back from its closing quote to the last quote without a backslash.
  std::size_t start_of_string() const {
    std::size_t quote = text_.rfind('"', read() - 2);
    while (true) {
      std::size_t backslashes = 0;
      while (backslashes < quote && text_[quote - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) return quote;
      quote = text_.rfind('"', quote - 1);
    }
  }

  // RFC 6901 pointer to the value that comes next.
  std::string pointer() const {
    json::json_pointer path;
    for (std::size_t level = 0; level < containers_.size(); ++level) {
      const json& container = *containers_[level];
      const bool innermost = level + 1 == containers_.size();
      if (container.is_array()) {
        path /= innermost ? container.size() : container.size() - 1;
      } else {
        path /= innermost ? key_ : keys_[level];
      }
    }
    return printable(path.to_string());
  }

  template <typename Value>
  bool add(Value&& value) {
    place_value(json(std::forward<Value>(value)));
    return true;
  }

  json& place_value(json value) {
    if (containers_.empty()) return document_ = std::move(value);
    json& container = *containers_.back();
    if (container.is_array()) {
      container.push_back(std::move(value));
      return container.back();
    }
    return container[key_] = std::move(value);
  }

  bool open(json container) {
    if (containers_.size() == static_cast<std::size_t>(kMaxJsonDepth)) {
      fail(read() - 1, "nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    json& placed = place_value(std::move(container));
    if (!keys_.empty()) keys_.back() = key_;
    containers_.push_back(&placed);  // stays valid: its parent does not grow before it is closed
    keys_.emplace_back();
    return true;
  }

  bool close() {
    containers_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& source_name_;
  const char* cursor_;  // one past the last character that the parser has taken
  json document_;
  std::vector<json*> containers_;  // the open objects and arrays, outermost first
  std::vector<std::string> keys_;  // for each of them the key whose value is open; "" in an array
  std::string key_;                // the key read last
};

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& source_name, std::size_t max_bytes) {
  const auto fail = [&](const std::string& what) { throw ConfigError(printable(source_name) + ": " + what); };
  if (text.size() > max_bytes) {
    fail(format_bytes(text.size()) + " of JSON, expected at most " + format_bytes(max_bytes));
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    fail("line 1, column 1: starts with a byte order mark, expected UTF-8 without one");
  }
  if (const auto offset = find_invalid_utf8(text)) {
    fail(place(text, *offset) + ": invalid UTF-8 " + in_quotes(text.substr(*offset, 1)));
  }
  if (const std::size_t offset = text.find('\0'); offset != std::string_view::npos) {
    fail(place(text, offset) + ": a zero byte, expected text");  // the parser would take it for the end
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) fail("is empty, expected JSON");

  StrictBuilder builder(text, source_name);
  json::sax_parse(builder.begin(), builder.end(), &builder);
  return builder.take();
}

}  // namespace attn
