// The forward calls that make up one run: a single one, or with a cache one for each piece of the sequence.
// Used by this room only.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "attention/observer.h"
#include "experiment/experiment.h"
#include "trace/attention_trace.h"

namespace attn {

struct ForwardResult {
  at::Tensor output;  ///< (B, T_q, d_model) of the last call.
  std::vector<ForwardCall> calls;
};

/// Told of every call before its first step is announced; `backend` and `cache_bytes` are not known then.
using BeforeCall = std::function<void(const ForwardCall&)>;

/// `x` (B, T, d_model) stands in the place of the experiment's, as part of an autograd graph.
/// Keeps keys and values of all calls where the config has a cache.
ForwardResult run_forward_calls(const Experiment& experiment, const at::Tensor& x, AttentionObserver& observer,
                                const BeforeCall& before = {});

}  // namespace attn
