#include "config/layer_reader.h"

#include <algorithm>

#include "config/mask_reader.h"
#include "config/rope_reader.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::int64_t kDefaultMaxSeqLen = 1024;

void read_sizes(const ObjectReader& config, const RunShape& shape, AttentionConfig& layer) {
  layer.d_model = shape.d_model;
  layer.H = shape.H;
  layer.module = config.word("module", kModuleWords).value_or(layer.module);
  layer.given_d_k = config.integer("d_k", 1, kMaxSize);
  layer.given_H_kv = config.integer("H_kv", 1, kMaxSize);
  layer.max_seq_len =
      config.integer("max_seq_len", 1, kMaxSize).value_or(std::max({shape.T, shape.key_length(), kDefaultMaxSeqLen}));
  const bool divides = layer.d_model % layer.H == 0;
  if (divides && layer.given_d_k == layer.d_model / layer.H) layer.given_d_k.reset();
  if (layer.given_H_kv == layer.H) layer.given_H_kv.reset();
}

void read_projections(const ObjectReader& config, AttentionConfig& layer) {
  layer.qkv = config.word("qkv", kQkvWords).value_or(layer.qkv);
  layer.bias = config.boolean("bias").value_or(layer.bias);
  layer.given_output_bias = config.boolean("output_bias");
  if (layer.given_output_bias == layer.bias) layer.given_output_bias.reset();
  layer.dropout = config.number("dropout").value_or(layer.dropout);
}

void read_visibility(const ObjectReader& config, const RunShape& shape, AttentionConfig& layer) {
  layer.window = config.integer("window", 1, kMaxSize);
  layer.mask = read_mask(config, shape.T, shape.key_length());
  // A layer that looks at another sequence, or whose mask opens the future, is not causal unless told so: and then it
  // is refused.
  const bool opens = shape.memory_length || (layer.mask && opens_the_future(*layer.mask));
  layer.causal = config.boolean("causal").value_or(!opens);
}

/// The effective config names the default of qk_norm_eps without a norm too, and a model's own config that of its
/// norms.
void read_norm(const ObjectReader& config, AttentionConfig& layer) {
  layer.qk_norm = config.boolean("qk_norm").value_or(layer.qk_norm);
  const std::optional<double> eps = config.number("qk_norm_eps");
  if (layer.qk_norm) {
    layer.qk_norm_eps = eps.value_or(layer.qk_norm_eps);
    return;
  }
  const bool is_given = !config.source().is_model_config || config.source().is_set(config.pointer("qk_norm_eps"));
  if (eps && *eps != layer.qk_norm_eps && is_given) config.fail("qk_norm_eps", "needs qk_norm true, got qk_norm false");
}

void read_scores(const ObjectReader& config, AttentionConfig& layer) {
  layer.rope = read_rope(config);
  read_norm(config, layer);
  layer.given_scale = config.number("scale");
  layer.softcap = config.number("softcap");
  layer.alibi = config.boolean("alibi").value_or(layer.alibi);
  layer.sink = config.boolean("sink").value_or(layer.sink);
  layer.engine = config.word("engine", kEngineWords).value_or(layer.engine);
}

/// Positions in two sequences are not comparable, so whatever compares them has no meaning.
void refuse_with_memory(const ObjectReader& config, const RunShape& shape, const AttentionConfig& layer) {
  if (!shape.memory_length) return;
  const std::string two_sequences = " with a memory: its keys are of another sequence, with positions of its own";
  if (layer.qkv != QkvLayout::kSeparate) {
    config.fail("qkv", "must be separate with a memory: q is made from x, k and v from the memory, got " +
                           to_string(layer.qkv));
  }
  if (layer.causal) config.fail("causal", "must be false" + two_sequences + ", got true");
  if (layer.window) config.refuse_key("window", two_sequences.substr(1));
  if (layer.rope) config.refuse_key("rope", two_sequences.substr(1));
  if (layer.alibi) config.fail("alibi", "must be false" + two_sequences + ", got true");
  if (layer.mask && !std::holds_alternative<RowsMask>(*layer.mask)) {
    config.fail("mask", "must be given in rows" + two_sequences + ", got a " + mask_kind(*layer.mask) + " mask");
  }
  config.refuse_key("cache", "with a memory: its keys and values are all there from the start");
}

void refuse_with_cache(const ObjectReader& config, const RunShape& shape, const AttentionConfig& layer) {
  if (!shape.cache || layer.causal) return;
  const std::string looks_ahead = " earlier tokens look at later ones, which are not there yet";
  if (layer.mask && opens_the_future(*layer.mask)) {
    config.fail("cache", "must be left out with a " + mask_kind(*layer.mask) + " mask: with it" + looks_ahead);
  }
  config.fail("cache", "needs causal true: without it" + looks_ahead + ", got causal false");
}

}  // namespace

AttentionConfig read_layer(const ObjectReader& config, const RunShape& shape) {
  AttentionConfig layer;
  read_sizes(config, shape, layer);
  read_projections(config, layer);
  read_visibility(config, shape, layer);
  read_scores(config, layer);
  if (const auto fault = find_fault(layer)) {
    throw ConfigError(config.source().where("/" + fault->key) + ": " + fault->text);
  }
  if (layer.given_scale == 1.0 / std::sqrt(static_cast<double>(layer.d_k()))) layer.given_scale.reset();
  if (layer.max_seq_len < shape.T) {
    config.fail("max_seq_len",
                "must be at least T (" + std::to_string(shape.T) + "), got " + std::to_string(layer.max_seq_len));
  }
  if (layer.max_seq_len < shape.key_length()) {
    config.fail("max_seq_len", "must be at least the memory's T_k (" + std::to_string(shape.key_length()) + "), got " +
                                   std::to_string(layer.max_seq_len));
  }
  refuse_with_memory(config, shape, layer);
  refuse_with_cache(config, shape, layer);
  return layer;
}

}  // namespace attn
