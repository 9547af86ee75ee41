// Verdicts of checks as lines of text, for every report that shows some. Private to this room.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "checks/check.h"
#include "report/text_report.h"

namespace attn {

inline constexpr std::size_t kStatusWidth = 5;   ///< "error"
inline constexpr std::size_t kDetailIndent = 9;  ///< below a check's name: two, the status, two.

/// `word` in the colour of a status, padded to kStatusWidth.
std::string status_word(CheckStatus status, bool color);

/// `word` as something that is wrong.
std::string in_red(const std::string& word, bool color);

/// Columns of the longest name.
std::size_t name_width(const std::vector<CheckResult>& checks);

/// Status, name, what it found; under a failure how large it is, the limit and its reason, and where.
void write_check(std::ostream& out, const CheckResult& check, std::size_t width_of_names, const TextOptions& options);

/// Words below a check's name, wrapped.
void write_detail(std::ostream& out, const std::string& text);

}  // namespace attn
