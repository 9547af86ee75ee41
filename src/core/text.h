// Small helpers for words and numbers as people read them. No I/O, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The choice nearest to `word` by edit distance, if it is near enough to be what was meant: at most a third of the
/// letters of the longer of both differ; a swap of neighbours counts once, upper and lower case not at all.
std::optional<std::string> closest_match(std::string_view word, const std::vector<std::string>& choices);

/// `unknown check "casuality"; did you mean "causality"?`, or, with no near choice, `...; known: a, b, c`.
std::string unknown_word(std::string_view kind, std::string_view word, const std::vector<std::string>& choices);

/// `a, b, c`.
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// The first sixteen, and "..." for the others: `1, 2, 2, ...`.
std::string join_first(const std::vector<std::string>& words);
std::string join_first(const std::vector<std::int64_t>& numbers);

/// `"text"` for an error message: as printable(), `"` and `\` escaped too, cut after `max_length` characters (`"so
/// lon..."`). Write attn::quoted where the text is a std::string: std::quoted of <iomanip> would be found as well.
std::string in_quotes(std::string_view text, std::size_t max_length = 60);

/// As printable(), cut after `max_length` characters, the last three of them "...": for a word that a user gave.
std::string shortened(std::string_view text, std::size_t max_length = 60);

/// The text with control characters, direction marks and invalid UTF-8 escaped (`\n`, `\x1b`, `\u202e`), so that it
/// cannot move a terminal's cursor or hide what it says.
std::string printable(std::string_view text);

/// The whole of `text` as a decimal integer; absent for anything else (sign "+", spaces, fractions, overflow).
std::optional<std::int64_t> parse_int64(std::string_view text);

/// `(2, 4, 8, 8)`.
std::string format_shape(const std::vector<std::int64_t>& shape);

/// `512 B`, `1.50 KiB`, `3.25 GiB`: binary units, three significant digits.
std::string format_bytes(std::uint64_t bytes);

/// `12,345,678`.
std::string format_count(std::uint64_t count);

/// A number for a table: `digits` significant digits, trailing zeros dropped, `nan`, `inf`, `-inf` by name.
std::string format_number(double value, int digits = 4);

/// Offset of the first byte that is not valid UTF-8 (RFC 3629: no surrogates, no overlong forms); absent when all is
/// valid.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// The code points of valid UTF-8. Throws nothing; an invalid byte becomes U+FFFD.
std::vector<char32_t> code_points(std::string_view text);

/// How many terminal columns the text takes: 0 for combining marks, 2 for wide East Asian characters, else 1.
std::size_t display_width(std::string_view text);

/// The text with spaces added up to `width` columns; `align_right` puts them in front. Longer text is left as it is.
std::string padded(std::string_view text, std::size_t width, bool align_right = false);

}  // namespace attn
