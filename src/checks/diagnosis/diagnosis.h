// Which known mistake explains a failing layer: each is tried on the layer's own parameters and input, and named when
// it reproduces the layer's numbers and the right formula does not.
#pragma once

#include <string>

#include "checks/check_context.h"

namespace attn {

/// "scale 1/sqrt(d_model) (0.125) instead of 1/sqrt(d_k) (0.25)"; empty when nothing explains it, or the layer
/// does not show what is needed.
std::string explain_failure(CheckContext& context);

}  // namespace attn
