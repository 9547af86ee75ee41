// JSON as the standard has it and nothing else: what a lenient reader lets pass (a key given twice, text after the
// end, a byte order mark) is an error that says where. Shape and meaning of the values are the caller's business.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace attn {

inline constexpr std::size_t kMaxJsonBytes = std::size_t{16} << 20;  ///< a larger config is the wrong file.
inline constexpr int kMaxJsonDepth = 64;                             ///< objects in arrays in objects ...

/// Parses one JSON document. Throws ConfigError "source_name: line 3, column 7: what is wrong":
/// syntax, duplicate key (with its JSON pointer), depth, size, invalid UTF-8, byte order mark, integer beyond 64 bits,
/// number beyond double. Columns count characters, not bytes. NaN, Infinity and comments are syntax errors.
nlohmann::json parse_strict_json(std::string_view text, const std::string& source_name,
                                 std::size_t max_bytes = kMaxJsonBytes);

}  // namespace attn
