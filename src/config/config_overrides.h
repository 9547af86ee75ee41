// `--set KEY=VALUE`: single keys of a config given on the command line. Private to this room.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/config_reader.h"

namespace attn {

/// Which option the words come from.
enum class OverrideOption { kSet, kSweep };

/// Applies the words in order to `root`, an object, and marks in `source` what they gave. Dots in KEY lead into nested
/// objects, which are made where they are missing. VALUE is JSON when it parses as JSON, else a string.
/// Throws ConfigError: no `=`, an empty key, a key below something that is no object.
void apply_set_words(nlohmann::json& root, ConfigSource& source, const std::vector<std::string>& set_words,
                     OverrideOption option = OverrideOption::kSet);

}  // namespace attn
