#include "trace/symbolic_shapes.h"

#include <stdexcept>

namespace attn {
namespace {

std::string query_length(const ShapeLetters& letters) { return letters.two_lengths ? "T_q" : "T"; }
std::string key_length(const ShapeLetters& letters) { return letters.two_lengths ? "T_k" : "T"; }

/// Of the keys that a call makes: those of the memory, else as many as it has tokens.
std::string new_key_length(const ShapeLetters& letters) {
  return letters.has_cache ? query_length(letters) : key_length(letters);
}

/// Of what is made before the layer is called.
std::string token_length(const ShapeLetters& letters) { return letters.has_cache ? "T" : query_length(letters); }

std::string query_width(const ShapeLetters& letters) { return letters.single_head ? "d_k" : "H*d_k"; }
std::string key_width(const ShapeLetters& letters) { return letters.grouped ? "H_kv*d_k" : query_width(letters); }
std::string qkv_width(const ShapeLetters& letters) {
  return letters.grouped ? "(H + 2*H_kv)*d_k" : "3*" + query_width(letters);
}

std::string heads_of(const ShapeLetters& letters, const std::string& heads, const std::string& rows,
                     const std::string& cols) {
  return "(B, " + (letters.single_head ? "" : heads + ", ") + rows + ", " + cols + ")";
}

}  // namespace

ShapeLetters letters_of(const RunConfig& config) {
  const AttentionConfig& layer = config.attention;
  return {.single_head = layer.module == ModuleKind::kSingleHead,
          .grouped = layer.H_kv() != layer.H,
          .two_lengths = config.memory_length.has_value() || config.cache.has_value(),
          .own_positions = config.padding == PaddingSide::kLeft && !config.memory_length,
          .has_cache = config.cache.has_value()};
}

std::string symbolic_shape(Step step, const ShapeLetters& letters) {
  const std::string T_q = query_length(letters);
  const std::string T_k = key_length(letters);
  const std::string key_heads = letters.grouped ? "H_kv" : "H";
  switch (step) {
    case Step::kTokens:
      return "(B, " + token_length(letters) + ")";
    case Step::kTokenEmbedding:
      return "(B, " + token_length(letters) + ", d_model)";
    case Step::kPositionEmbedding:
      return (letters.own_positions ? "(B, " : "(") + token_length(letters) + ", d_model)";
    case Step::kX:
    case Step::kProjected:
    case Step::kOutput:
      return "(B, " + T_q + ", d_model)";
    case Step::kMemory:
      return "(B, " + T_k + ", d_model)";
    case Step::kQkv:
      return "(B, " + T_q + ", " + qkv_width(letters) + ")";
    case Step::kQProj:
    case Step::kMerged:
      return "(B, " + T_q + ", " + query_width(letters) + ")";
    case Step::kKProj:
    case Step::kVProj:
      return "(B, " + new_key_length(letters) + ", " + key_width(letters) + ")";
    case Step::kQ:
    case Step::kQNormed:
    case Step::kQRotated:
    case Step::kContext:
      return heads_of(letters, "H", T_q, "d_k");
    case Step::kK:
    case Step::kV:
    case Step::kKNormed:
    case Step::kKRotated:
      return heads_of(letters, key_heads, new_key_length(letters), "d_k");
    case Step::kKCached:
    case Step::kVCached:
      return heads_of(letters, key_heads, T_k, "d_k");
    case Step::kScores:
    case Step::kScaledScores:
    case Step::kCappedScores:
    case Step::kBiasedScores:
    case Step::kMaskedScores:
    case Step::kWeights:
    case Step::kDroppedWeights:
      return heads_of(letters, "H", T_q, T_k);
  }
  throw std::logic_error("a step without a shape");
}

std::string symbolic_parameter_shape(std::string_view name, const ShapeLetters& letters) {
  if (name == "token_embedding.weight") return "(vocab_size, d_model)";
  if (name == "position_embedding.weight") return "(max_seq_len, d_model)";
  if (name == "q_norm.weight" || name == "k_norm.weight") return "(d_k)";
  if (name == "sinks") return "(H)";

  const std::size_t dot = name.find('.');
  const std::string_view projection = name.substr(0, dot);
  const bool is_output = projection == "c_proj" || projection == "o_proj";
  std::string to;
  if (is_output) {
    to = "d_model";
  } else if (projection == "c_attn" || projection == "qkv_proj") {
    to = qkv_width(letters);
  } else if (projection == "q_proj") {
    to = query_width(letters);
  } else if (projection == "k_proj" || projection == "v_proj") {
    to = key_width(letters);
  }
  if (dot == std::string_view::npos || to.empty()) {
    throw std::logic_error("a parameter without a shape: " + std::string(name));
  }
  const std::string from = is_output ? query_width(letters) : "d_model";
  return name.substr(dot) == ".bias" ? "(" + to + ")" : "(" + to + ", " + from + ")";
}

}  // namespace attn
