// How many terminal columns one character takes. Used by text.cpp only; the locale is never asked.
#pragma once

namespace attn {

/// 0 for combining marks and other characters drawn on their neighbour, 2 for wide East Asian characters and emoji,
/// else 1.
int character_width(char32_t code_point);

}  // namespace attn
