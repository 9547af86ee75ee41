// The version of this program, as in the records.
#pragma once

#include <string>

namespace attn {

/// "0.1.0".
std::string tool_version();

}  // namespace attn
