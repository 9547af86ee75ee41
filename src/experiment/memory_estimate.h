// What a run will need, worked out from the config before anything is allocated. No LibTorch here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/run_config.h"

namespace attn {

enum class Purpose { kTrace, kSavedTrace, kVerify, kHeatmap };

struct MemoryEstimate {
  std::uint64_t bytes = 0;            ///< the whole run's peak, an upper bound; saturates instead of overflowing.
  std::uint64_t attention_bytes = 0;  ///< one (B, H, T_q, T_k) tensor; with a cache of the largest call.
  std::uint64_t mask_bytes = 0;       ///< the (max_seq_len, max_seq_len) buffer.
};

MemoryEstimate estimate_memory(const RunConfig& config, Purpose purpose);

/// Memory that this process may still take: the machine's available memory or the control group's limit, whichever is
/// smaller. Absent where the system does not tell.
std::optional<std::uint64_t> available_memory();

/// Throws ResourceError when the estimate exceeds `max_memory` (default: 80 % of what is available):
/// "T 100000 with H 64 needs 2.3 TiB for each (B, H, T, T) tensor, ...; limit ... (raise it with --max-memory)".
void refuse_if_too_large(const RunConfig& config, Purpose purpose, std::optional<std::uint64_t> max_memory);

}  // namespace attn
