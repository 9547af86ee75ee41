// Reads the config's `mask`, and the file it may name. Private to this room.
#pragma once

#include <cstdint>
#include <optional>

#include "config/config_reader.h"
#include "config/mask_config.h"

namespace attn {

/// The mask of a config whose outermost object is `config`; absent when it has none. Rows must be T_q rows of T_k.
/// Throws ConfigError, or IoError "source: /mask/file: ..." for a file.
std::optional<MaskConfig> read_mask(const ObjectReader& config, std::int64_t T_q, std::int64_t T_k);

}  // namespace attn
