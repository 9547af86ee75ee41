// What a forward pass costs, and which places along the sequence a check tries when it cannot afford all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/attention_config.h"

namespace attn {

/// Multiply-adds of one forward pass of B items of T tokens. Tensors of T x T numbers are bound by memory: passing over
/// one counts as 16 a number. A core does some 1e10 a second in float32.
double forward_cost(const AttentionConfig& config, std::int64_t B, std::int64_t T);

/// The part of it between q, k, v and context.
double core_cost(const AttentionConfig& config, std::int64_t B, std::int64_t T);

/// What a check may take for runs of its own choice of length, whatever the size of the run that is judged.
inline constexpr double kSmallBatchBytes = 32.0 * 1024 * 1024;

/// Bytes that a forward pass of one item of T tokens takes, its steps held together.
double forward_bytes(const AttentionConfig& config, std::int64_t T, std::int64_t element_size);

/// The longest sequence of at most `wanted` tokens that fits kSmallBatchBytes and the budget of multiply-adds; never
/// shorter than `at_least`.
std::int64_t affordable_length(const AttentionConfig& config, std::int64_t at_least, std::int64_t wanted,
                               double multiply_adds, std::int64_t element_size);

/// The places first ... last, all of them when at most `affordable`. Else a sample in order, which always holds both
/// ends, the second and third, odd places, and both sides of every power of two, where blocked code has its borders;
/// then evenly spread ones. It may be larger than `affordable`, never larger than the whole.
std::vector<std::int64_t> telling_places(std::int64_t first, std::int64_t last, double affordable);

/// "all 49 cuts", "24 of 1023 cuts".
std::string describe_sample(std::size_t tried, std::int64_t all, const std::string& things);

}  // namespace attn
