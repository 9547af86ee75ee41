// Reads how long and how many the sequences of a run are: B, T, d_model, H, padding, lengths, memory, cache, and what
// the input says about them. Private to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/config_reader.h"
#include "config/input_reader.h"
#include "config/run_config.h"

namespace attn {

struct RunShape {
  std::int64_t B = 1, T = 1, d_model = 1, H = 1;
  std::optional<std::int64_t> memory_length;
  std::optional<PaddingSide> padding;
  std::vector<std::int64_t> lengths;  ///< with padding: B of them.
  std::optional<CacheConfig> cache;

  std::int64_t key_length() const { return memory_length.value_or(T); }
};

/// Throws ConfigError: a size that is missing, or that is not what the input has; items of different lengths without
/// padding; lengths and padding of which only one is there; a cache whose pieces are not T.
RunShape read_run_shape(const ObjectReader& config, const InputFacts& facts);

}  // namespace attn
