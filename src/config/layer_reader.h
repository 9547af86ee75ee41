// Reads the layer of a config: every key of AttentionConfig. Private to this room.
#pragma once

#include "config/attention_config.h"
#include "config/config_reader.h"
#include "config/run_shape.h"

namespace attn {

/// Throws ConfigError for whatever find_fault() refuses, for a max_seq_len below T or T_k, and for what makes no sense
/// with the run's memory or cache. A given value that says what would be so anyway (d_k, H_kv, output_bias, scale) is
/// not kept: so the effective config, which has it filled in, reads back alike.
AttentionConfig read_layer(const ObjectReader& config, const RunShape& shape);

}  // namespace attn
