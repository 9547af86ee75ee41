// A whole traced run: config in, record out. Called by `cli`; no LibTorch in sight.
#pragma once

#include <cstdint>

#include "trace/attention_trace.h"

namespace attn {

struct TraceOptions {
  bool backward = true;
  std::int64_t max_values = 0;  ///< tensors of at most this many elements carry their numbers; 0: none.
  bool keep_tensors = false;    ///< every step, gradient and parameter is kept as bytes, to be saved.
};

/// Runs the config's layer forward, then backward from loss = sum(output * dy) with a seeded dy ~ N(0, 1). With a cache
/// it runs forward once for each piece of the sequence, and never backward: a cache is for inference.
/// Throws what make_experiment() throws; LibTorch's own errors are translated.
AttentionTrace trace_attention(const RunConfig& config, const TraceOptions& options = {});

}  // namespace attn
