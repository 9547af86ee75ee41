// What a layer has beyond plain attention, in words, one fact a line. Private to this room.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"
#include "report/run_facts.h"
#include "trace/attention_trace.h"

namespace attn {

/// Which query heads share a key head, the rotary embedding, what happens to the scores and in which order, padding.
/// Empty for a layer that has none of them.
std::vector<RunFact> feature_facts(const RunConfig& config);

/// The mask's own lines; empty where it is causal, or nothing, and no more.
std::vector<RunFact> mask_facts(const RunConfig& config);

/// The engine and the backend that ran; empty for the engine explicit.
std::vector<RunFact> engine_facts(const AttentionTrace& trace);

/// What the cache holds, as measured; empty without one.
std::vector<RunFact> cache_facts(const AttentionTrace& trace);

}  // namespace attn
