// Models whose projections, or whose names for them, are their own: GPT-2, Falcon, BERT.
#include <cmath>

#include "config/models/model_keys.h"
#include "config/models/model_rope.h"
#include "config/models/model_types.h"
#include "core/text.h"

namespace attn {

namespace {

/// d_model and H as numbers, where a translation must count with them.
struct Sizes {
  std::int64_t d_model, H;
};

Sizes take_width_and_heads(ModelReader& model, std::initializer_list<const char*> width,
                           std::initializer_list<const char*> heads, const Sizes& defaults) {
  model.take("d_model", width, defaults.d_model);
  model.take("H", heads, defaults.H);
  // What is no size is refused when our keys are read, unless the command line gave another.
  const auto d_model = as_integer(model.value(width, defaults.d_model, "d_model"), 1, kMaxSize);
  const auto H = as_integer(model.value(heads, defaults.H, "H"), 1, kMaxSize);
  return {d_model.value_or(defaults.d_model), H.value_or(defaults.H)};
}

}  // namespace

void translate_gpt2(ModelReader& model) {
  const Sizes sizes =
      take_width_and_heads(model, {"n_embd", "hidden_size"}, {"n_head", "num_attention_heads"}, {768, 12});
  model.set_as_every_layer("qkv", "fused");
  model.set_as_every_layer("bias", true);
  model.set_as_every_layer("causal", true);
  take_dropout(model, "attn_pdrop", "resid_pdrop", 0.1);
  const bool by_width = model.flag("scale_attn_weights", true);
  const bool by_layer = model.flag("scale_attn_by_inverse_layer_idx", false);
  const std::int64_t layer = model.layer_of({"n_layer", "num_hidden_layers"}, 12, by_layer);
  if (!by_width || by_layer) {
    if (by_width && (model.is_given("d_model") || model.is_given("H") || model.is_given("d_k"))) {
      model.refuse("/scale_attn_by_inverse_layer_idx",
                   "says the scale by the width of a head, which the command line changes: give --set scale too",
                   "scale");
    }
    const double d_k = static_cast<double>(sizes.d_model) / static_cast<double>(sizes.H);
    const double scale = by_width ? 1.0 / std::sqrt(d_k) : 1.0;
    model.set("scale", scale / (by_layer ? static_cast<double>(layer + 1) : 1.0),
              by_layer ? "from /scale_attn_by_inverse_layer_idx: divided by layer + 1" : "from /scale_attn_weights",
              by_layer ? "/scale_attn_by_inverse_layer_idx" : "/scale_attn_weights");
  }
  model.explain("weights_layout", "auto sees by their shapes that weights of gpt2 are kept [in, out]");
}

void translate_falcon(ModelReader& model) {
  if (model.flag("alibi", false)) {
    model.refuse("/alibi",
                 "must be false: falcon scales this bias as it scales the scores, which ours is not, got true",
                 "alibi");
  }
  const Sizes sizes =
      take_width_and_heads(model, {"hidden_size", "n_embed"}, {"num_attention_heads", "n_head"}, {4544, 71});
  const bool is_new = model.flag("new_decoder_architecture", false);
  const bool has_one_key_head = model.flag("multi_query", true);
  const nlohmann::json key_heads = model.value({"num_kv_heads", "n_head_kv"}, nullptr, "H_kv");
  if (is_new) {
    model.take("H_kv", {"num_kv_heads", "n_head_kv"}, nullptr, "is H");
  } else if (has_one_key_head) {
    const std::string unused = key_heads.is_null() ? "" : ", so num_kv_heads " + key_heads.dump() + " does not count";
    model.set("H_kv", 1, "as multi_query is true (" + model.origin({"multi_query"}) + ")" + unused,
              model.has("multi_query") ? "/multi_query" : "");
  } else {
    if (!key_heads.is_null() && key_heads != sizes.H) {
      model.refuse("/num_kv_heads",
                   "must be num_attention_heads (" + std::to_string(sizes.H) +
                       ") where neither multi_query nor new_decoder_architecture is true, got " + describe(key_heads),
                   "H_kv");
    }
    model.explain("H_kv", "is H as multi_query is false (" + model.origin({"multi_query"}) + ")");
  }
  // Each key head's query heads, then its key, then its value, in all three kinds of falcon.
  model.set_as_every_layer("qkv", "fused-per-head");
  model.take("bias", {"bias"}, false);
  model.set_as_every_layer("causal", true);
  take_dropout(model, "attention_dropout", "hidden_dropout", 0.0);
  model.layer_of({"num_hidden_layers", "n_layer"}, 32, false);
  read_model_rope(model);
}

void translate_bert(ModelReader& model) {
  const std::string positions = model.file().string("position_embedding_type").value_or("absolute");
  model.pass_over({"position_embedding_type"});
  if (positions != "absolute") {
    model.refuse("/position_embedding_type",
                 "must be absolute: positions that enter the scores are not supported, got " + in_quotes(positions));
  }
  model.take("d_model", {"hidden_size"}, 768);
  model.take("H", {"num_attention_heads"}, 12);
  model.set_as_every_layer("qkv", "separate");
  model.set_as_every_layer("bias", true);
  const bool causal = model.flag("is_decoder", false);
  model.set("causal", causal, model.origin({"is_decoder"}), model.has("is_decoder") ? "/is_decoder" : "");
  take_dropout(model, "attention_probs_dropout_prob", "hidden_dropout_prob", 0.1);
  model.layer_of({"num_hidden_layers"}, 12, false);
}

}  // namespace attn
