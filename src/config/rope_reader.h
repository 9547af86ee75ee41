// Reads the config's `rope`. Private to this room.
#pragma once

#include <optional>

#include "config/config_reader.h"
#include "config/rope_config.h"

namespace attn {

/// The rotary embedding of a config whose outermost object is `config`; absent when it has none. Types, words and which
/// keys belong together are checked here, ranges by find_fault().
/// Throws ConfigError: no style, a key that this kind of scaling has not, one that it needs and has not.
std::optional<RopeConfig> read_rope(const ObjectReader& config);

}  // namespace attn
