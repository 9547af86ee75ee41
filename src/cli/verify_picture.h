// --picture: what effective-mask has found, cell by cell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checks/check.h"

namespace attn {

/// Throws ConfigError when a map of T x T cells is larger than a picture can be.
void check_picture_size(std::int64_t T);

/// The bytes of a PNG when effective-mask failed and has a map. Else none, and `reason` says why:
/// "effective-mask passed".
std::optional<std::string> draw_dependency_picture(const VerifyResult& result, std::string& reason);

}  // namespace attn
