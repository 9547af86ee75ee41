// Which rows and columns of a map get a label, and what it says. Counts pixels, draws nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// Longer labels are cut to this many characters, the last of them an ellipsis.
inline constexpr std::size_t kMaxLabelCharacters = 12;

/// What stands beside one row or column.
struct AxisLabel {
  std::int64_t index = 0;  ///< of the row or column, from 0.
  std::string text;
};

/// The first of 1, 2, 5, 10, 20, 50, 100 ... that sets labels at least `pitch` pixels apart when every step-th cell of
/// `cell` pixels has one.
std::int64_t label_step(std::int64_t cell, std::int64_t pitch);

/// A token as it is written beside its row: spaces can be seen, control characters are escaped, long words are cut.
std::string label_text(std::string_view token);

/// Every step-th of `count` labels: `words` (count of them), or without words the positions, counted from
/// `first_position`. The step is counted in positions then, so that the numbers are round: 8, 10, 12 ...
std::vector<AxisLabel> axis_labels(std::int64_t count, const std::vector<std::string>& words,
                                   std::int64_t first_position, std::int64_t step);

/// Pixels of the widest label; 0 without labels.
std::int64_t widest_label(const std::vector<AxisLabel>& labels, std::int64_t zoom);

/// The text in lines of at most `max_characters`, broken at spaces, and inside a word only where one is longer.
/// No line for an empty text.
std::vector<std::string> wrapped_lines(std::string_view text, std::int64_t max_characters);

}  // namespace attn
