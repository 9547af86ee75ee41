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

}  // namespace

ordered_json to_json(const RunConfig& config) {
  const AttentionConfig& attention = config.attention;
  ordered_json json;
  json["B"] = config.B;
  json["T"] = config.T;
  json["d_model"] = attention.d_model;
  json["H"] = attention.H;
  json["module"] = to_string(attention.module);
  json["d_k"] = attention.d_k();
  json["qkv"] = to_string(attention.qkv);
  json["bias"] = attention.bias;
  json["dropout"] = attention.dropout;
  json["causal"] = attention.causal;
  json["max_seq_len"] = attention.max_seq_len;
  json["embedding"] = config.embedding ? embedding_json(*config.embedding) : ordered_json();
  json["weights"] = config.weights ? ordered_json(config.weights->string()) : ordered_json();
  json["weights_layout"] = to_string(config.weights_layout);
  json["input"] = std::visit([](const auto& input) { return input_json(input); }, config.input);
  json["mode"] = to_string(config.mode);
  json["dtype"] = to_string(config.dtype);
  json["device"] = config.device;
  json["seed"] = config.seed;
  json["threads"] = config.threads ? ordered_json(*config.threads) : ordered_json();
  return json;
}

}  // namespace attn
