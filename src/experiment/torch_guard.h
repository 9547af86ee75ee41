// The border between LibTorch's world and ours. The entry points of `trace` and `checks` run inside it.
#pragma once

#include <functional>
#include <string>

#include "config/run_config.h"

namespace attn {

/// Runs `work` with the config's thread count, and turns LibTorch's exceptions into ours: out of memory becomes
/// ResourceError, anything else "where: LibTorch: the first line of what it said", without its stack of frames.
/// LibTorch's exception stays nested in ours, for --debug. Our own errors pass through.
void with_torch_guarded(const RunConfig& config, const std::function<void()>& work);

}  // namespace attn
