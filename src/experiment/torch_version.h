// Which LibTorch runs, for rooms that should not see its headers.
#pragma once

#include <string>

namespace attn {

/// "2.13.0".
std::string torch_version();

}  // namespace attn
