// Llama and those that came after it: separate projections, grouped heads, RoPE.
#include <cmath>

#include "config/models/model_keys.h"
#include "config/models/model_rope.h"
#include "config/models/model_types.h"
#include "core/text.h"

namespace attn {
namespace {

/// Whether RoPE is said for each kind of layer.
bool has_rope_of_kinds(const ModelReader& model) {
  const nlohmann::json* rope = model.file().find("rope_parameters");
  return rope != nullptr && rope->is_object() && rope->contains("full_attention");
}

/// Qwen 2 and 3: the window is off unless switched on, and then only from one layer up.
std::string take_qwen_window(ModelReader& model, bool causal) {
  const bool is_on = model.flag("use_sliding_window", false);
  const auto window = model.integer({"sliding_window"}, 4096, -kMaxSize);
  const std::int64_t first_layer = model.integer({"max_window_layers"}, 28).value_or(0);
  const std::int64_t layers = model.integer({"num_hidden_layers"}, 32).value_or(32);
  const bool has_window = is_on && window;
  const bool differ = model.types_differ(has_window && first_layer > 0 && first_layer < layers);
  const std::int64_t layer =
      model.layer_of({"num_hidden_layers"}, 32, differ && (has_window || has_rope_of_kinds(model)));
  const std::optional<std::string> said = layer_type(model, layer);
  const std::string type = said.value_or(has_window && layer >= first_layer ? "sliding_attention" : "full_attention");
  const std::string said_by_type = "/layer_types/" + std::to_string(layer);
  if (type == "full_attention") {
    if (!is_on) {
      const bool is_unused = model.has("sliding_window");
      model.explain("window", "null: use_sliding_window is false (" + model.origin({"use_sliding_window"}) + ")" +
                                  (is_unused ? ", so the window " + model.origin({"sliding_window"}) + " is off"
                                             : std::string()));
    } else if (!window) {
      model.explain("window", "null " + model.origin({"sliding_window"}));
    } else if (said) {
      model.explain("window", "null as " + said_by_type + " says full_attention");
    } else {
      model.explain("window", "null as the layer is below max_window_layers, " + std::to_string(first_layer) + " (" +
                                  model.origin({"max_window_layers"}) + ")");
    }
    return type;
  }
  if (!has_window) {
    model.refuse(said_by_type, "must be full_attention where use_sliding_window is not true, got \"sliding_attention\"",
                 "window");
    return type;
  }
  take_window(model, *window,
              said ? "layer_types says sliding_attention"
                   : "the layer is not below max_window_layers, " + std::to_string(first_layer) + " (" +
                         model.origin({"max_window_layers"}) + ")",
              causal);
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
    take_window(model, *window, "", causal);
  } else {
    model.explain("window", "null " + model.origin({"sliding_window"}));
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
  const bool differ = model.types_differ(true) && (window.has_value() || has_rope_of_kinds(model));
  const std::int64_t layer = model.layer_of({"num_hidden_layers"}, 26, differ);
  const std::optional<std::string> said = layer_type(model, layer);
  const std::string type = said.value_or(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  if (!window) {
    model.explain("window", "null " + model.origin({"sliding_window"}));
  } else if (type == "sliding_attention") {
    take_window(model, *window, said ? "layer_types says sliding_attention" : "even layers have it", causal);
  } else {
    model.explain("window", said ? "null as layer_types says full_attention" : "null as odd layers have none");
  }
  const auto scalar = model.number("query_pre_attn_scalar", 256.0);
  if (scalar && !(*scalar > 0.0)) {
    model.refuse("/query_pre_attn_scalar", "must be a number above 0, got " + nlohmann::json(*scalar).dump(), "scale");
  } else if (scalar) {
    model.set("scale", 1.0 / std::sqrt(*scalar),
              "is 1/sqrt(query_pre_attn_scalar), " + format_number(*scalar, 6) + " (" +
                  model.origin({"query_pre_attn_scalar"}) + ")",
              model.has("query_pre_attn_scalar") ? "/query_pre_attn_scalar" : "");
  }
  model.take("softcap", {"attn_logit_softcapping"}, 50.0);
  take_dropout(model, "attention_dropout", "", 0.0);
  read_model_rope(model, type);
}

}  // namespace attn
