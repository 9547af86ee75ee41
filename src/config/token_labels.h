// The words that a tensor file says its tokens are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// B lists of T words from JSON text: an array of T strings, for every batch item, or an array of B such arrays.
/// Absent when the text is anything else.
std::optional<std::vector<std::vector<std::string>>> parse_token_labels(std::string_view text, std::int64_t B,
                                                                        std::int64_t T);

}  // namespace attn
