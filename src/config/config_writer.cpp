#include <nlohmann/json.hpp>

#include "config/config_file.h"
#include "config/words.h"

namespace attn {
namespace {

using nlohmann::ordered_json;

ordered_json input_json(const RandomInput&) { return {{"kind", word_of(kInputKindWords, InputKind::kRandom)}}; }

ordered_json input_json(const TensorInput& input) {
  return {{"kind", word_of(kInputKindWords, InputKind::kTensor)}, {"file", input.file.string()}, {"name", input.name}};
}

ordered_json input_json(const TextInput& input) {
  ordered_json json{{"kind", word_of(kInputKindWords, InputKind::kText)}};
  // A file stays a file: its lines would be longer to read, and belong to whoever owns the file.
  if (input.file) {
    json["file"] = input.file->string();
  } else {
    json["text"] = input.texts;
  }
  json["tokenizer"] = to_string(input.tokenizer);
  return json;
}

ordered_json input_json(const TokensInput& input) {
  return {{"kind", word_of(kInputKindWords, InputKind::kTokens)}, {"ids", input.ids}};
}

ordered_json embedding_json(const EmbeddingConfig& embedding) {
  return {{"vocab_size", embedding.vocab_size}, {"positions", to_string(embedding.positions)}};
}

ordered_json mask_json(const BidirectionalMask&) {
  return {{"kind", word_of(kMaskKindWords, MaskKind::kBidirectional)}};
}

ordered_json mask_json(const PrefixMask& mask) {
  return {{"kind", word_of(kMaskKindWords, MaskKind::kPrefix)}, {"length", mask.length}};
}

ordered_json mask_json(const DocumentMask& mask) {
  return {{"kind", word_of(kMaskKindWords, MaskKind::kDocument)}, {"lengths", mask.lengths}};
}

ordered_json mask_json(const DilatedMask& mask) {
  return {{"kind", word_of(kMaskKindWords, MaskKind::kDilated)}, {"stride", mask.stride}};
}

ordered_json mask_json(const RowsMask& mask) {
  if (mask.file) return {{"file", mask.file->string()}, {"name", mask.name}};
  ordered_json rows = ordered_json::array();
  for (std::int64_t i = 0; i < mask.queries; ++i) {
    ordered_json& row = rows.emplace_back(ordered_json::array());
    for (std::int64_t j = 0; j < mask.keys; ++j) {
      row.push_back(mask.visible[static_cast<std::size_t>(i * mask.keys + j)] ? 1 : 0);
    }
  }
  return rows;
}

ordered_json scaling_json(const RopeScaling& scaling) {
  ordered_json json{{"kind", to_string(scaling.kind)}};
  if (scaling.kind == RopeScalingKind::kNone) return json;
  json["factor"] = scaling.factor;
  if (scaling.kind == RopeScalingKind::kLinear) return json;
  if (scaling.kind == RopeScalingKind::kLlama3) {
    json["low_freq_factor"] = scaling.low_freq_factor;
    json["high_freq_factor"] = scaling.high_freq_factor;
  } else {
    json["beta_fast"] = scaling.beta_fast;
    json["beta_slow"] = scaling.beta_slow;
    json["attention_factor"] = scaling.attention_factor ? ordered_json(*scaling.attention_factor) : ordered_json();
  }
  json["original_max_seq_len"] = scaling.original_max_seq_len;
  return json;
}

ordered_json rope_json(const RopeConfig& rope) {
  return {{"theta", rope.theta}, {"style", to_string(rope.style)}, {"scaling", scaling_json(rope.scaling)}};
}

ordered_json cache_json(const CacheConfig& cache) {
  return {{"prefill", cache.prefill}, {"steps", cache.steps}, {"chunk", cache.chunk}};
}

/// The value, or null where there is none.
template <typename Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

/// What the layer is and does, from its heads to its engine.
void write_layer(ordered_json& json, const AttentionConfig& layer) {
  json["d_model"] = layer.d_model;
  json["H"] = layer.H;
  json["H_kv"] = layer.H_kv();
  json["module"] = to_string(layer.module);
  json["d_k"] = layer.d_k();
  json["qkv"] = to_string(layer.qkv);
  json["bias"] = layer.bias;
  json["output_bias"] = layer.output_bias();
  json["dropout"] = layer.dropout;
  json["causal"] = layer.causal;
  json["window"] = or_null(layer.window);
  json["mask"] =
      layer.mask ? std::visit([](const auto& mask) { return mask_json(mask); }, *layer.mask) : ordered_json();
  json["rope"] = layer.rope ? rope_json(*layer.rope) : ordered_json();
  json["qk_norm"] = layer.qk_norm;
  json["qk_norm_eps"] = layer.qk_norm_eps;
  json["scale"] = layer.scale();
  json["softcap"] = or_null(layer.softcap);
  json["alibi"] = layer.alibi;
  json["sink"] = layer.sink;
  json["engine"] = to_string(layer.engine);
  json["max_seq_len"] = layer.max_seq_len;
}

}  // namespace

ordered_json to_json(const RunConfig& config) {
  ordered_json json;
  json["B"] = config.B;
  json["T"] = config.T;
  write_layer(json, config.attention);
  json["padding"] = config.padding ? ordered_json(to_string(*config.padding)) : ordered_json();
  json["lengths"] = config.padding ? ordered_json(config.lengths) : ordered_json();
  json["memory"] = config.memory_length ? ordered_json{{"T_k", *config.memory_length}} : ordered_json();
  json["cache"] = config.cache ? cache_json(*config.cache) : ordered_json();
  json["embedding"] = config.embedding ? embedding_json(*config.embedding) : ordered_json();
  json["weights"] = config.weights ? ordered_json(config.weights->string()) : ordered_json();
  json["weights_layout"] = to_string(config.weights_layout);
  json["input"] = std::visit([](const auto& input) { return input_json(input); }, config.input);
  json["mode"] = to_string(config.mode);
  json["dtype"] = to_string(config.dtype);
  json["device"] = config.device;
  json["seed"] = config.seed;
  json["threads"] = or_null(config.threads);
  return json;
}

}  // namespace attn
