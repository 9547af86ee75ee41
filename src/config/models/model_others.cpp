// Models whose projections, or whose names for them, are their own: GPT-2, Falcon, BERT.
#include <algorithm>
#include <cmath>

#include "config/models/model_keys.h"
#include "config/models/model_rope.h"
#include "config/models/model_types.h"
#include "core/text.h"

namespace attn {

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

}  // namespace attn
