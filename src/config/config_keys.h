// Every key that a config may have, in the order of the README's table: what is read, written, suggested and listed.
// A new key is added here, in the reader that it belongs to (type, range, default) and in config_writer.cpp.
// Private to this room.
#pragma once

#include <string>
#include <vector>

#include "config/words.h"

namespace attn {

inline const std::vector<std::string> kTopKeys{
    "B",           "T",           "d_model", "H",         "H_kv",    "module",         "d_k",         "qkv",
    "bias",        "output_bias", "dropout", "causal",    "window",  "mask",           "rope",        "qk_norm",
    "qk_norm_eps", "scale",       "softcap", "alibi",     "sink",    "engine",         "max_seq_len", "padding",
    "lengths",     "memory",      "cache",   "embedding", "weights", "weights_layout", "input",       "mode",
    "dtype",       "device",      "seed",    "threads"};

/// Where an editor finds the schema of a config. It is not part of what a config means, so it is read past.
inline const std::string kSchemaKey = "$schema";

inline const std::vector<std::string> kEmbeddingKeys{"vocab_size", "positions"};
inline const std::vector<std::string> kMemoryKeys{"T_k"};
inline const std::vector<std::string> kCacheKeys{"prefill", "steps", "chunk"};
inline const std::vector<std::string> kRopeKeys{"theta", "style", "scaling"};
inline const std::vector<std::string> kMaskFileKeys{"file", "name"};

/// The keys of a mask of this kind.
inline std::vector<std::string> mask_keys(MaskKind kind) {
  switch (kind) {
    case MaskKind::kBidirectional:
      return {"kind"};
    case MaskKind::kPrefix:
      return {"kind", "length"};
    case MaskKind::kDocument:
      return {"kind", "lengths"};
    case MaskKind::kDilated:
      return {"kind", "stride"};
  }
  return {};
}

/// The keys of a rope.scaling of this kind.
inline std::vector<std::string> scaling_keys(RopeScalingKind kind) {
  switch (kind) {
    case RopeScalingKind::kNone:
      return {"kind"};
    case RopeScalingKind::kLinear:
      return {"kind", "factor"};
    case RopeScalingKind::kLlama3:
      return {"kind", "factor", "low_freq_factor", "high_freq_factor", "original_max_seq_len"};
    case RopeScalingKind::kYarn:
      return {"kind", "factor", "beta_fast", "beta_slow", "attention_factor", "original_max_seq_len"};
  }
  return {};
}

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
