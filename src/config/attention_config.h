// One attention layer, as plain data. Filled by config/config_file.h or by hand; used by every room above.
// No LibTorch and no JSON here. The shape letters are those of attention/shapes.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace attn {

/// Which class computes the layer.
enum class ModuleKind {
  kMultiHead,   ///< "multi-head": H heads side by side.
  kSingleHead,  ///< "single-head": one head, no head axis: scores are (B, T, T).
};

/// How the projections to q, k and v are stored.
enum class QkvLayout {
  kFused,         ///< "fused": c_attn makes all q, then all k, then all v (thirds); c_proj at the end.
  kFusedPerHead,  ///< "fused-per-head": qkv_proj makes q, k, v of head 0, then of head 1 ...; o_proj at the end.
  kSeparate,      ///< "separate": q_proj, k_proj, v_proj; o_proj at the end.
};

/// How a token's place in the sequence enters x, when x comes from an embedding.
enum class Positions {
  kLearned,     ///< "learned": a parameter per position.
  kSinusoidal,  ///< "sinusoidal": sin and cos of geometric wavelengths, Vaswani et al. 2017, section 3.5.
  kNone,        ///< "none": x is the token embedding alone.
};

/// One attention layer. Plain data; call validate() once before use.
struct AttentionConfig {
  ModuleKind module = ModuleKind::kMultiHead;
  std::int64_t d_model = 64;               ///< width of one token.
  std::int64_t H = 4;                      ///< query heads.
  std::optional<std::int64_t> given_d_k;   ///< not given: d_model / H, and H must divide d_model.
  QkvLayout qkv = QkvLayout::kFused;
  bool bias = false;                       ///< on all four projections.
  double dropout = 0.0;                    ///< of attention weights and of the output; acts in training mode only. [0, 1)
  bool causal = true;                      ///< a token sees itself and earlier tokens only.
  std::int64_t max_seq_len = 1024;         ///< longest T the layer takes; size of its causal mask.

  std::int64_t d_k() const { return given_d_k.value_or(d_model / H); }           ///< width of one head.
  std::int64_t heads_width() const { return H * d_k(); }                         ///< all heads side by side.
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(d_k())); }   ///< Vaswani et al. 2017, section 3.2.1.
};

/// Throws ConfigError naming the key, the rule and the values: sizes of at least 1, d_model % H == 0 unless d_k is
/// given, single-head has H = 1, 0 <= dropout < 1, and products that fit 64 bits.
void validate(const AttentionConfig& config);

/// The words of the config file.
std::string to_string(ModuleKind module);
std::string to_string(QkvLayout layout);
std::string to_string(Positions positions);

}  // namespace attn
