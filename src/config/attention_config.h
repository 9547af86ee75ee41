// One attention layer, as plain data. Filled by config/config_file.h or by hand; used by every room above.
// No LibTorch and no JSON here. The shape letters are those of attention/shapes.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "config/mask_config.h"
#include "config/rope_config.h"

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

/// Which code computes what happens between q, k, v and context.
enum class Engine {
  kExplicit,  ///< "explicit": every step on its own, so that it can be watched.
  kSdpa,      ///< "sdpa": LibTorch's scaled_dot_product_attention, which shows nothing between q, k, v and context.
};

/// No size in a config may exceed this. LibTorch and our own code multiply sizes in 64 bits: with this limit any
/// product of two of them fits (T * T, d_model * 3 * H * d_k, max_seq_len * max_seq_len). Longer products, such as B *
/// H * T * T, are worked out with an overflow test by the memory estimate, before anything is allocated.
inline constexpr std::int64_t kMaxSize = (std::int64_t{1} << 31) - 1;

/// One attention layer. Plain data; call validate() once before use.
struct AttentionConfig {
  ModuleKind module = ModuleKind::kMultiHead;
  std::int64_t d_model = 64;               ///< width of one token.
  std::int64_t H = 4;                      ///< query heads.
  std::optional<std::int64_t> given_d_k;   ///< not given: d_model / H, and H must divide d_model.
  std::optional<std::int64_t> given_H_kv;  ///< key and value heads, a divisor of H; not given: H.
  QkvLayout qkv = QkvLayout::kFused;
  bool bias = false;  ///< on the projections to q, k and v, and on the output's unless that is given.
  std::optional<bool> given_output_bias;  ///< on the output projection; not given: as `bias`.
  double dropout = 0.0;                ///< of attention weights and of the output; acts in training mode only. [0, 1)
  bool causal = true;                  ///< a token sees itself and earlier tokens only.
  std::int64_t max_seq_len = 1024;     ///< longest T the layer takes; size of its causal mask.
  std::optional<std::int64_t> window;  ///< W keys, itself included: i - j < W; abs(i - j) < W where it is not causal.
  std::optional<MaskConfig> mask;      ///< one more mask, combined by AND.
  std::optional<RopeConfig> rope;      ///< q and k are turned by their positions.
  bool qk_norm = false;                ///< RMS norm of each head's q and k, before they are turned (Qwen3).
  double qk_norm_eps = 1e-6;
  std::optional<double> given_scale;  ///< of the scores; not given: 1/sqrt(d_k).
  std::optional<double> softcap;  ///< scaled scores s become softcap * tanh(s / softcap), before the mask (Gemma 2).
  bool alibi = false;             ///< -slope(h) * (i - j) is added to the scaled scores (Press et al. 2022).
  bool sink = false;              ///< a learned score per head takes part in the softmax, and has no value (gpt-oss).
  Engine engine = Engine::kExplicit;

  std::int64_t d_k() const { return given_d_k.value_or(d_model / H); }  ///< width of one head.
  std::int64_t heads_width() const { return H * d_k(); }                ///< all heads side by side.
  std::int64_t H_kv() const { return given_H_kv.value_or(H); }          ///< key and value heads.
  std::int64_t heads_a_group() const { return H / H_kv(); }  ///< query heads that share a key head, neighbours.
  bool output_bias() const { return given_output_bias.value_or(bias); }
  /// Vaswani et al. 2017, section 3.2.1.
  double scale() const { return given_scale.value_or(1.0 / std::sqrt(static_cast<double>(d_k()))); }

  /// The same layer without its causal mask, window and mask of its own.
  AttentionConfig without_masks() const;

  friend bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

/// What is wrong with one key.
struct ConfigFault {
  std::string key;   ///< "H".
  std::string text;  ///< "must divide d_model (64) unless d_k is given, got 5".
};

/// The first broken rule, if any. Sizes: from 1 to kMaxSize, H divides d_model unless d_k is given, H_kv divides H,
/// single-head has H = 1, 3 * H * d_k <= kMaxSize, 0 <= dropout < 1. Numbers: finite, scale and caps above 0. RoPE: an
/// even d_k. Combinations without sense: a mask that opens the future in a causal layer; engine sdpa with softcap or
/// sink, which LibTorch's function has not.
std::optional<ConfigFault> find_fault(const AttentionConfig& config);

/// Throws ConfigError "H: must divide d_model (64) unless d_k is given, got 5" when there is a fault.
void validate(const AttentionConfig& config);

/// The words of the config file.
std::string to_string(ModuleKind module);
std::string to_string(QkvLayout layout);
std::string to_string(Positions positions);
std::string to_string(Engine engine);

}  // namespace attn
