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

/// No size in a config may exceed this. LibTorch and our own code multiply sizes in 64 bits: with this limit any
/// product of two of them fits (T * T, d_model * 3 * H * d_k, max_seq_len * max_seq_len). Longer products, such as B *
/// H * T * T, are worked out with an overflow test by the memory estimate, before anything is allocated.
inline constexpr std::int64_t kMaxSize = (std::int64_t{1} << 31) - 1;

/// One attention layer. Plain data; call validate() once before use.
struct AttentionConfig {
  ModuleKind module = ModuleKind::kMultiHead;
  std::int64_t d_model = 64;              ///< width of one token.
  std::int64_t H = 4;                     ///< query heads.
  std::optional<std::int64_t> given_d_k;  ///< not given: d_model / H, and H must divide d_model.
  QkvLayout qkv = QkvLayout::kFused;
  bool bias = false;                ///< on all four projections.
  double dropout = 0.0;             ///< of attention weights and of the output; acts in training mode only. [0, 1)
  bool causal = true;               ///< a token sees itself and earlier tokens only.
  std::int64_t max_seq_len = 1024;  ///< longest T the layer takes; size of its causal mask.

  std::int64_t d_k() const { return given_d_k.value_or(d_model / H); }          ///< width of one head.
  std::int64_t heads_width() const { return H * d_k(); }                        ///< all heads side by side.
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(d_k())); }  ///< Vaswani et al. 2017, section 3.2.1.

  friend bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

/// What is wrong with one key.
struct ConfigFault {
  std::string key;   ///< "H".
  std::string text;  ///< "must divide d_model (64) unless d_k is given, got 5".
};

/// The first broken rule, if any: sizes from 1 to kMaxSize, d_model % H == 0 unless d_k is given, single-head has H =
/// 1, 3 * H * d_k <= kMaxSize, 0 <= dropout < 1.
std::optional<ConfigFault> find_fault(const AttentionConfig& config);

/// Throws ConfigError "H: must divide d_model (64) unless d_k is given, got 5" when there is a fault.
void validate(const AttentionConfig& config);

/// The words of the config file.
std::string to_string(ModuleKind module);
std::string to_string(QkvLayout layout);
std::string to_string(Positions positions);

}  // namespace attn
