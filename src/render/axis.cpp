#include "render/axis.h"

#include <algorithm>

#include "core/text.h"
#include "render/font.h"

namespace attn {
namespace {

// Valid UTF-8 cut before its character number `count`.
std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    const bool begins_character = (static_cast<unsigned char>(text[end]) & 0xc0U) != 0x80U;
    if (begins_character && seen++ == count) break;
  }
  return text.substr(0, end);
}

}  // namespace

std::int64_t label_step(std::int64_t cell, std::int64_t pitch) {
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit * power * cell >= pitch) return digit * power;
    }
  }
}

std::string label_text(std::string_view token) {
  std::string text;
  for (const char byte : printable(token)) {
    if (byte == ' ') {
      text += "␣";
    } else {
      text += byte;
    }
  }
  if (code_points(text).size() <= kMaxLabelCharacters) return text;
  return std::string(first_characters(text, kMaxLabelCharacters - 1)) + "…";
}

std::vector<AxisLabel> axis_labels(std::int64_t count, const std::vector<std::string>& words,
                                   std::int64_t first_position, std::int64_t step) {
  std::vector<AxisLabel> labels;
  if (!words.empty()) {
    for (std::int64_t i = 0; i < count; i += step)
      labels.push_back({i, label_text(words[static_cast<std::size_t>(i)])});
    return labels;
  }
  const std::int64_t first_round = (first_position + step - 1) / step * step;
  for (std::int64_t position = first_round; position < first_position + count; position += step) {
    labels.push_back({position - first_position, std::to_string(position)});
  }
  return labels;
}

std::int64_t widest_label(const std::vector<AxisLabel>& labels, std::int64_t zoom) {
  std::int64_t widest = 0;
  for (const AxisLabel& label : labels) widest = std::max(widest, text_width(label.text, zoom));
  return widest;
}

std::vector<std::string> wrapped_lines(std::string_view text, std::int64_t max_characters) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::string_view line = first_characters(text, static_cast<std::size_t>(max_characters));
    if (line.size() < text.size() && text[line.size()] != ' ') {
      const std::size_t space = line.rfind(' ');
      if (space != std::string_view::npos && space > 0) line = line.substr(0, space);
    }
    lines.emplace_back(line);
    text.remove_prefix(line.size());
    if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  return lines;
}

}  // namespace attn
