// Rotary position embedding (RoPE, Su et al. 2021) of one layer, as plain data: which angle a pair of channels turns
// by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attn {

/// Which two channels of a head of width d_k make a pair. Checkpoints do not say it, so there is no default.
enum class RopeStyle {
  kHalf,      ///< "half": channel c and c + d_k/2 (Llama as Hugging Face keeps it, Qwen, Gemma, GPT-NeoX).
  kAdjacent,  ///< "adjacent": channels 2c and 2c + 1 (the paper; Llama as Meta keeps it, GPT-J).
};

/// How the frequencies are stretched for texts longer than those of training.
enum class RopeScalingKind {
  kNone,    ///< "none": pair c turns by position * theta^(-2c / d_k).
  kLinear,  ///< "linear": every frequency divided by `factor` (position interpolation, Chen et al. 2023).
  kLlama3,  ///< "llama3": low frequencies divided, high ones kept, those between blended.
  kYarn,    ///< "yarn": the same by a ramp over the number of turns, cos and sin times a factor (Peng et al. 2023).
};

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;                       ///< linear, llama3, yarn: > 0, usually how many times longer.
  double low_freq_factor = 1.0;              ///< llama3: fewer turns than this in the original length are divided.
  double high_freq_factor = 4.0;             ///< llama3: more than this are kept; above low_freq_factor.
  double beta_fast = 32.0;                   ///< yarn: pairs that turn more often than this are kept.
  double beta_slow = 1.0;                    ///< yarn: pairs that turn less often than this are divided.
  std::optional<double> attention_factor;    ///< yarn, of cos and sin; absent: 0.1 ln(factor) + 1, 1 where factor <= 1.
  std::int64_t original_max_seq_len = 8192;  ///< llama3, yarn: the length in training.

  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

struct RopeConfig {
  double theta = 10000.0;  ///< base of the frequencies: finite, above 0.
  RopeStyle style = RopeStyle::kHalf;
  RopeScaling scaling;

  friend bool operator==(const RopeConfig&, const RopeConfig&) = default;
};

/// The words of the config file.
std::string to_string(RopeStyle style);
std::string to_string(RopeScalingKind kind);

}  // namespace attn
