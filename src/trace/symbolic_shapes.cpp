#include "trace/symbolic_shapes.h"

#include <stdexcept>

namespace attn {

std::string symbolic_shape(Step step, ModuleKind module) {
  const bool single = module == ModuleKind::kSingleHead;
  switch (step) {
    case Step::kTokens:
      return "(B, T)";
    case Step::kPositionEmbedding:
      return "(T, d_model)";
    case Step::kTokenEmbedding:
    case Step::kX:
    case Step::kProjected:
    case Step::kOutput:
      return "(B, T, d_model)";
    case Step::kQkv:
      return single ? "(B, T, 3*d_k)" : "(B, T, 3*H*d_k)";
    case Step::kQProj:
    case Step::kKProj:
    case Step::kVProj:
    case Step::kMerged:
      return single ? "(B, T, d_k)" : "(B, T, H*d_k)";
    case Step::kQ:
    case Step::kK:
    case Step::kV:
    case Step::kContext:
      return single ? "(B, T, d_k)" : "(B, H, T, d_k)";
    case Step::kScores:
    case Step::kScaledScores:
    case Step::kMaskedScores:
    case Step::kWeights:
    case Step::kDroppedWeights:
      return single ? "(B, T, T)" : "(B, H, T, T)";
  }
  throw std::logic_error("a step without a shape");
}

std::string symbolic_parameter_shape(std::string_view name, ModuleKind module) {
  const std::string heads = module == ModuleKind::kSingleHead ? "d_k" : "H*d_k";
  if (name == "token_embedding.weight") return "(vocab_size, d_model)";
  if (name == "position_embedding.weight") return "(max_seq_len, d_model)";

  const std::size_t dot = name.find('.');
  const std::string_view projection = name.substr(0, dot);
  const bool is_output = projection == "c_proj" || projection == "o_proj";
  const bool is_fused = projection == "c_attn" || projection == "qkv_proj";
  const bool is_separate = projection == "q_proj" || projection == "k_proj" || projection == "v_proj";
  if (dot == std::string_view::npos || !(is_output || is_fused || is_separate)) {
    throw std::logic_error("a parameter without a shape: " + std::string(name));
  }
  const std::string to = is_output ? "d_model" : (is_fused ? "3*" : "") + heads;
  const std::string from = is_output ? heads : "d_model";
  return name.substr(dot) == ".bias" ? "(" + to + ")" : "(" + to + ", " + from + ")";
}

}  // namespace attn
