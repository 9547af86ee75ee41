// The one list of step names. A step is a named intermediate of the pipeline; traces, checks, heatmaps and tests all
// speak of steps by these names. No LibTorch here, so that every room may include it.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace attn {

/// In the order in which a forward pass announces them. Shapes for a multi-head layer; a single-head layer
/// has no H axis. A step that says "with ..." is announced by layers that have it only; the engine sdpa announces
/// nothing between v (or what q, k and v became) and context.
enum class Step {
  kTokens,             ///< token ids                              (B, T)
  kTokenEmbedding,     ///< looked up by id                        (B, T, d_model)
  kPositionEmbedding,  ///< the same for every batch item          (T, d_model)
  kX,                  ///< the layer's input                      (B, T, d_model)
  kMemory,             ///< with a memory: what keys come from     (B, T_k, d_model)
  kQkv,                ///< one projection (fused layouts)         (B, T, (H + 2*H_kv)*d_k)
  kQProj,              ///< three projections (separate layout)    (B, T, H*d_k)
  kKProj,              ///<                                        (B, T_k, H_kv*d_k)
  kVProj,
  kQ,        ///< queries, split into heads              (B, H, T, d_k)
  kK,        ///< keys                                   (B, H_kv, T_k, d_k)
  kV,        ///< values
  kQNormed,  ///< with qk_norm: of root mean square 1
  kKNormed,
  kQRotated,  ///< with rope: turned by their positions
  kKRotated,
  kKCached,  ///< with a cache: all keys that this call's queries may look at, (B, H_kv, T_k, d_k)
  kVCached,
  kScores,          ///< q k^T                                  (B, H, T, T_k)
  kScaledScores,    ///< scores / sqrt(d_k)
  kCappedScores,    ///< with softcap: cap * tanh(scaled scores / cap)
  kBiasedScores,    ///< with alibi: the nearer, the higher
  kMaskedScores,    ///< -inf where a query may not look
  kWeights,         ///< softmax over the keys, before dropout
  kDroppedWeights,  ///< after dropout
  kContext,         ///< weights v                              (B, H, T, d_k)
  kMerged,          ///< heads side by side again               (B, T, H*d_k)
  kProjected,       ///< after the output projection            (B, T, d_model)
  kOutput,          ///< after the output's dropout             (B, T, d_model)
};

inline constexpr std::array kStepNames = {std::string_view{"tokens"},
                                          std::string_view{"token_embedding"},
                                          std::string_view{"position_embedding"},
                                          std::string_view{"x"},
                                          std::string_view{"memory"},
                                          std::string_view{"qkv"},
                                          std::string_view{"q_proj"},
                                          std::string_view{"k_proj"},
                                          std::string_view{"v_proj"},
                                          std::string_view{"q"},
                                          std::string_view{"k"},
                                          std::string_view{"v"},
                                          std::string_view{"q_normed"},
                                          std::string_view{"k_normed"},
                                          std::string_view{"q_rotated"},
                                          std::string_view{"k_rotated"},
                                          std::string_view{"k_cached"},
                                          std::string_view{"v_cached"},
                                          std::string_view{"scores"},
                                          std::string_view{"scaled_scores"},
                                          std::string_view{"capped_scores"},
                                          std::string_view{"biased_scores"},
                                          std::string_view{"masked_scores"},
                                          std::string_view{"weights"},
                                          std::string_view{"dropped_weights"},
                                          std::string_view{"context"},
                                          std::string_view{"merged"},
                                          std::string_view{"projected"},
                                          std::string_view{"output"}};
static_assert(kStepNames.size() == static_cast<std::size_t>(Step::kOutput) + 1);

constexpr std::string_view step_name(Step step) { return kStepNames[static_cast<std::size_t>(step)]; }

/// The step of this name, if there is one.
constexpr std::optional<Step> find_step(std::string_view name) {
  for (std::size_t index = 0; index < kStepNames.size(); ++index) {
    if (kStepNames[index] == name) return static_cast<Step>(index);
  }
  return std::nullopt;
}

}  // namespace attn
