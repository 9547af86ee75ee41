// What the translations of several kinds of model do alike. Private to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/models/model_reader.h"

namespace attn {

/// Sizes of a model, where its file does not say them. Null: as `H` (key heads), d_model / H (width of a head).
struct SizeDefaults {
  std::int64_t d_model, H;
  nlohmann::json H_kv, d_k;
};

/// d_model, H, H_kv and d_k by the names that most models have for them.
void take_sizes(ModelReader& model, const SizeDefaults& defaults);

/// One probability here acts on the weights and on the output. A model may have two, or, with `of_output` "", none on
/// the output: refused where they differ.
void take_dropout(ModelReader& model, const char* of_weights, const char* of_output, double model_default);

/// A decoder is causal unless its file says that it has been turned into an encoder. Returns what it is.
bool take_causal(ModelReader& model);

/// Sets the window; `why` this layer has it: "even layers have it". Refused where the layer is not causal: a window in
/// both directions has another meaning there than here.
void take_window(ModelReader& model, std::int64_t window, const std::string& why, bool causal);

/// What `layer_types` says of one layer, "full_attention" or "sliding_attention"; absent where the file has none.
std::optional<std::string> layer_type(ModelReader& model, std::int64_t layer);

}  // namespace attn
