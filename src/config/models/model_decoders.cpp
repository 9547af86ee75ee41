// Llama and those that came after it: separate projections, grouped heads, RoPE.
#include <cmath>

#include "config/models/model_keys.h"
#include "config/models/model_rope.h"
#include "config/models/model_types.h"
#include "core/text.h"

namespace attn {
namespace {

/// Qwen 2 and 3: the window is off unless switched on, and then only from one layer up.
std::string take_qwen_window(ModelReader& model, bool causal) {
  const bool is_on = model.flag("use_sliding_window", false);
  const auto window = model.integer({"sliding_window"}, 4096, -kMaxSize);
  const auto first_layer = model.integer({"max_window_layers"}, 28);
  const std::int64_t layer = model.layer_of({"num_hidden_layers"}, 32, is_on);
  const bool by_number = is_on && window && layer >= first_layer.value_or(0);
  const std::optional<std::string> said = layer_type(model, layer);
  const std::string type = said.value_or(by_number ? "sliding_attention" : "full_attention");
  if (type == "full_attention") return type;
  if (!is_on || !window) {
    model.refuse("/layer_types/" + std::to_string(layer),
                 "must be full_attention where use_sliding_window is not true, got \"sliding_attention\"", "window");
    return type;
  }
  take_window(model, *window,
              said ? ", layer_types says sliding_attention" : ", the layer is not below max_window_layers", causal);
  return type;
}

}  // namespace

void translate_llama(ModelReader& model) {
  take_sizes(model, {4096, 32, nullptr, nullptr});
  model.set_as_every_layer("qkv", "separate");
  model.take("bias", {"attention_bias"}, false);
  take_causal(model);
  take_dropout(model, "attention_dropout", "", 0.0);
  model.layer_of({"num_hidden_layers"}, 32, false);
  read_model_rope(model);
}

void translate_mistral(ModelReader& model) {
  take_sizes(model, {4096, 32, 8, nullptr});
  model.set_as_every_layer("qkv", "separate");
  model.set_as_every_layer("bias", false);
  const bool causal = take_causal(model);
  const auto window = model.integer({"sliding_window"}, 4096, -kMaxSize);
  if (window) {
    take_window(model, *window, model.has("sliding_window") ? "" : " by default", causal);
  }
  take_dropout(model, "attention_dropout", "", 0.0);
  model.layer_of({"num_hidden_layers"}, 32, false);
  read_model_rope(model);
}

void translate_qwen2(ModelReader& model) {
  take_sizes(model, {4096, 32, 32, nullptr});
  model.set_as_every_layer("qkv", "separate");
  model.set_as_every_layer("bias", true);
  model.set_as_every_layer("output_bias", false);
  const std::string type = take_qwen_window(model, take_causal(model));
  take_dropout(model, "attention_dropout", "", 0.0);
  read_model_rope(model, type);
}

void translate_qwen3(ModelReader& model) {
  take_sizes(model, {4096, 32, 32, 128});
  model.set_as_every_layer("qkv", "separate");
  model.take("bias", {"attention_bias"}, false);
  const std::string type = take_qwen_window(model, take_causal(model));
  model.set_as_every_layer("qk_norm", true);
  model.take("qk_norm_eps", {"rms_norm_eps"}, 1e-6);
  take_dropout(model, "attention_dropout", "", 0.0);
  read_model_rope(model, type);
}

void translate_gemma2(ModelReader& model) {
  take_sizes(model, {2304, 8, 4, 256});
  model.set_as_every_layer("qkv", "separate");
  model.take("bias", {"attention_bias"}, false);
  const bool causal = take_causal(model);
  if (model.flag("use_bidirectional_attention", false)) {
    model.refuse("/use_bidirectional_attention", "must be false: its mask is not supported, got true", "causal");
  }
  // Every other layer has the window, the first of all too.
  const auto window = model.integer({"sliding_window"}, 4096, -kMaxSize);
  const std::int64_t layer = model.layer_of({"num_hidden_layers"}, 26, window.has_value());
  const std::optional<std::string> said = layer_type(model, layer);
  const std::string type = said.value_or(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  if (type == "sliding_attention" && window) {
    take_window(model, *window, said ? ", layer_types says sliding_attention" : ", even layers have it", causal);
  }
  const auto scalar = model.number("query_pre_attn_scalar", 256.0);
  if (scalar && !(*scalar > 0.0)) {
    model.refuse("/query_pre_attn_scalar", "must be a number above 0, got " + format_number(*scalar, 17), "scale");
  } else if (scalar) {
    model.set("scale", 1.0 / std::sqrt(*scalar), "is 1/sqrt(query_pre_attn_scalar), " + format_number(*scalar, 17),
              model.has("query_pre_attn_scalar") ? "/query_pre_attn_scalar" : "");
  }
  model.take("softcap", {"attn_logit_softcapping"}, 50.0);
  take_dropout(model, "attention_dropout", "", 0.0);
  read_model_rope(model, type);
}

}  // namespace attn
