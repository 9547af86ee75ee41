#include "config/model_types.h"

#include <algorithm>
#include <cmath>

#include "config/model_rope.h"
#include "core/text.h"

namespace attn {
namespace {

using nlohmann::json;

/// Sizes of a model, where its file does not say them. Null: as `H` (key heads), d_model / H (width of a head).
struct SizeDefaults {
  std::int64_t d_model, H;
  json H_kv, d_k;
};

/// The keys that most models share.
void take_sizes(ModelReader& model, const SizeDefaults& defaults) {
  model.take("d_model", {"hidden_size"}, defaults.d_model);
  model.take("H", {"num_attention_heads"}, defaults.H);
  model.take("H_kv", {"num_key_value_heads"}, defaults.H_kv);
  model.take("d_k", {"head_dim"}, defaults.d_k);
}

/// One probability here acts on the weights and on the output; a model may have two, or none on the output ("").
void take_dropout(ModelReader& model, const char* of_weights, const char* of_output, double model_default) {
  const double weights = model.number(of_weights, model_default).value_or(0.0);
  const bool has_two = *of_output != '\0';
  const double output = has_two ? model.number(of_output, model_default).value_or(0.0) : 0.0;
  const std::string pointer = pointer_to("", of_weights);
  if (weights != output) {
    model.refuse(pointer,
                 "acts on the weights, and " + (has_two ? pointer_to("", of_output) : std::string("nothing")) +
                     " on the output (" + format_number(weights, 17) + " and " + format_number(output, 17) +
                     "); here one dropout acts on both: choose one, as by --set dropout=" + format_number(weights, 17),
                 "dropout");
  }
  model.set("dropout", weights, model.has(of_weights) ? "from " + pointer : "by " + model.model_type() + "'s default",
            model.has(of_weights) ? pointer : "");
}

/// A decoder is causal unless its file says that it has been turned into an encoder.
bool take_causal(ModelReader& model) {
  if (model.flag("is_causal", true)) {
    model.set_as_every_layer("causal", true);
    return true;
  }
  model.set("causal", false, "from /is_causal", "/is_causal");
  return false;
}

void take_window(ModelReader& model, std::int64_t window, const std::string& why) {
  model.set("window", window, "from /sliding_window" + why + " (itself included)", "/sliding_window");
}

/// A window in both directions has another meaning there than here: not W keys to each side, or not the same W.
void refuse_window_without_causal(const ModelReader& model, bool causal) {
  if (causal) return;
  model.refuse("/is_causal",
               "must be true with a sliding window: what the window hides of later keys is not said, got "
               "false",
               "window");
}

/// What `layer_types` says of one layer; absent where the file has none.
std::optional<std::string> layer_type(ModelReader& model, std::int64_t layer) {
  const json types = model.value({"layer_types"}, nullptr);
  if (types.is_null()) return std::nullopt;
  const auto index = static_cast<std::size_t>(layer);
  if (!types.is_array() || index >= types.size() || !types[index].is_string()) {
    model.refuse("/layer_types", "must be an array with a word for each layer, got " + describe(types));
  }
  const std::string type = types[index].get<std::string>();
  if (type != "full_attention" && type != "sliding_attention") {
    model.refuse("/layer_types/" + std::to_string(layer),
                 "must be full_attention or sliding_attention, got " + in_quotes(type), "window");
  }
  return type;
}

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
  const auto window = model.integer({"sliding_window"}, 4096);
  if (window) {
    refuse_window_without_causal(model, causal);
    take_window(model, *window, model.has("sliding_window") ? "" : " by default");
  }
  take_dropout(model, "attention_dropout", "", 0.0);
  model.layer_of({"num_hidden_layers"}, 32, false);
  read_model_rope(model);
}

/// Qwen 2 and 3: the window is off unless switched on, and then only from one layer up.
std::string take_qwen_window(ModelReader& model, bool causal) {
  const bool is_on = model.flag("use_sliding_window", false);
  const auto window = model.integer({"sliding_window"}, 4096);
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
  refuse_window_without_causal(model, causal);
  take_window(model, *window,
              said ? ", layer_types says sliding_attention" : ", the layer is not below max_window_layers");
  return type;
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
  const auto window = model.integer({"sliding_window"}, 4096);
  const std::int64_t layer = model.layer_of({"num_hidden_layers"}, 26, window.has_value());
  const std::optional<std::string> said = layer_type(model, layer);
  const std::string type = said.value_or(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  if (type == "sliding_attention" && window) {
    refuse_window_without_causal(model, causal);
    take_window(model, *window, said ? ", layer_types says sliding_attention" : ", even layers have it");
  }
  if (const auto scalar = model.number("query_pre_attn_scalar", 256.0)) {
    model.set("scale", 1.0 / std::sqrt(*scalar), "is 1/sqrt(query_pre_attn_scalar), " + format_number(*scalar, 17),
              model.has("query_pre_attn_scalar") ? "/query_pre_attn_scalar" : "");
  }
  model.take("softcap", {"attn_logit_softcapping"}, 50.0);
  take_dropout(model, "attention_dropout", "", 0.0);
  read_model_rope(model, type);
}

void translate_gpt2(ModelReader& model) {
  model.take("d_model", {"n_embd", "hidden_size"}, 768);
  model.take("H", {"n_head", "num_attention_heads"}, 12);
  model.set_as_every_layer("qkv", "fused");
  model.set_as_every_layer("bias", true);
  model.set_as_every_layer("causal", true);
  take_dropout(model, "attn_pdrop", "resid_pdrop", 0.1);
  const bool by_width = model.flag("scale_attn_weights", true);
  const bool by_layer = model.flag("scale_attn_by_inverse_layer_idx", false);
  const std::int64_t layer = model.layer_of({"n_layer", "num_hidden_layers"}, 12, by_layer);
  if (!by_width || by_layer) {
    const auto d_model = model.integer({"n_embd", "hidden_size"}, 768);
    const auto H = model.integer({"n_head", "num_attention_heads"}, 12);
    const double d_k =
        static_cast<double>(d_model.value_or(768)) / static_cast<double>(std::max(H.value_or(12), std::int64_t{1}));
    if (by_width && (model.is_given("d_model") || model.is_given("H") || model.is_given("d_k"))) {
      model.refuse("/scale_attn_by_inverse_layer_idx",
                   "says the scale by the width of a head, which the command line changes: give --set scale too",
                   "scale");
    }
    const double scale = by_width ? 1.0 / std::sqrt(d_k) : 1.0;
    model.set("scale", scale / (by_layer ? static_cast<double>(layer + 1) : 1.0),
              by_layer ? "from /scale_attn_by_inverse_layer_idx: divided by layer + 1" : "from /scale_attn_weights",
              by_layer ? "/scale_attn_by_inverse_layer_idx" : "/scale_attn_weights");
  }
  // Which precision the softmax has in training with short floats; ours has at least float32 always.
  model.pass_over({"reorder_and_upcast_attn"});
  model.note("weights of gpt2 are kept [in, out]: weights_layout auto sees it by their shapes");
}

void translate_falcon(ModelReader& model) {
  if (model.flag("alibi", false)) {
    model.refuse("/alibi",
                 "must be false: falcon scales this bias as it scales the scores, which ours is not, got true",
                 "alibi");
  }
  model.take("d_model", {"hidden_size", "n_embed"}, 4544);
  model.take("H", {"num_attention_heads", "n_head"}, 71);
  const bool is_new = model.flag("new_decoder_architecture", false);
  const bool has_one_key_head = model.flag("multi_query", true);
  if (is_new) {
    model.take("H_kv", {"num_kv_heads", "n_head_kv"}, nullptr);
  } else if (has_one_key_head) {
    model.pass_over({"num_kv_heads", "n_head_kv"});  // falcon does not look at it either
    model.set("H_kv", 1, model.has("multi_query") ? "from /multi_query" : "by falcon's default of multi_query",
              model.has("multi_query") ? "/multi_query" : "");
  } else {
    const auto heads = model.integer({"num_kv_heads", "n_head_kv"}, std::nullopt);
    const auto H = model.integer({"num_attention_heads", "n_head"}, 71);
    if (heads && heads != H) {
      model.refuse("/num_kv_heads",
                   "must be num_attention_heads (" + std::to_string(H.value_or(71)) +
                       ") where neither multi_query nor new_decoder_architecture is true, got " +
                       std::to_string(*heads),
                   "H_kv");
    }
  }
  // Each key head's query heads, then its key, then its value, in all three kinds of falcon.
  model.set_as_every_layer("qkv", "fused-per-head");
  model.take("bias", {"bias"}, false);
  model.set_as_every_layer("causal", true);
  take_dropout(model, "attention_dropout", "hidden_dropout", 0.0);
  model.layer_of({"num_hidden_layers", "n_layer"}, 32, false);
  model.pass_over({"parallel_attn", "num_ln_in_parallel_attn"});
  read_model_rope(model);
}

void translate_bert(ModelReader& model) {
  const std::string positions = model.file().string("position_embedding_type").value_or("absolute");
  model.pass_over({"position_embedding_type", "pooler_num_attention_heads", "pooler_size_per_head"});
  if (positions != "absolute") {
    model.refuse("/position_embedding_type",
                 "must be absolute: positions that enter the scores are not supported, got " + in_quotes(positions));
  }
  model.take("d_model", {"hidden_size"}, 768);
  model.take("H", {"num_attention_heads"}, 12);
  model.set_as_every_layer("qkv", "separate");
  model.set_as_every_layer("bias", true);
  const bool causal = model.flag("is_decoder", false);
  model.set("causal", causal, model.has("is_decoder") ? "from /is_decoder" : "by bert's default of is_decoder",
            model.has("is_decoder") ? "/is_decoder" : "");
  take_dropout(model, "attention_probs_dropout_prob", "hidden_dropout_prob", 0.1);
  model.layer_of({"num_hidden_layers"}, 12, false);
}

}  // namespace

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> kTypes{{"bert", translate_bert},     {"falcon", translate_falcon},
                                             {"gemma2", translate_gemma2}, {"gpt2", translate_gpt2},
                                             {"llama", translate_llama},   {"mistral", translate_mistral},
                                             {"qwen2", translate_qwen2},   {"qwen3", translate_qwen3}};
  return kTypes;
}

}  // namespace attn
