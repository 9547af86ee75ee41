// The rotary embedding in a model's own config. Private to this room.
#pragma once

#include <string>

#include "config/models/model_reader.h"

namespace attn {

/// Sets our `rope` from the keys of three generations of files: `rope_theta` alone; with `rope_scaling`
/// {"type" or "rope_type", ...}; `rope_parameters` {"rope_type", "rope_theta", ...}, which may hold one such object for
/// each kind of layer ("full_attention", "sliding_attention": `layer_type`). All models read here pair channel c with
/// c + d_k/2.
/// Throws ConfigError for what our keys cannot say: another kind of scaling, a part of the channels only, a factor of
/// an unknown meaning.
void read_model_rope(ModelReader& model, const std::string& layer_type = "full_attention");

}  // namespace attn
