// Every key that a config may have, in the order of the README's table: what is read, written, suggested and listed.
// A new key is added here, in config_file.cpp (type, range, default) and in config_writer.cpp. Private to this room.
#pragma once

#include <string>
#include <vector>

#include "config/words.h"

namespace attn {

inline const std::vector<std::string> kTopKeys{
    "B",     "T",       "d_model", "H",           "module",    "d_k",     "qkv",
    "bias",  "dropout", "causal",  "max_seq_len", "embedding", "weights", "weights_layout",
    "input", "mode",    "dtype",   "device",      "seed",      "threads"};

/// Where an editor finds the schema of a config. It is not part of what a config means, so it is read past.
inline const std::string kSchemaKey = "$schema";

inline const std::vector<std::string> kEmbeddingKeys{"vocab_size", "positions"};

/// The keys of an input of this kind.
inline std::vector<std::string> input_keys(InputKind kind) {
  switch (kind) {
    case InputKind::kRandom:
      return {"kind"};
    case InputKind::kTensor:
      return {"kind", "file", "name"};
    case InputKind::kText:
      return {"kind", "text", "file", "tokenizer"};
    case InputKind::kTokens:
      return {"kind", "ids"};
  }
  return {};
}

}  // namespace attn
