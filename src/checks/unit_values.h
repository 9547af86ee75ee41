// Values that make the context show the weights that a core really uses.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace attn {

/// Values (B, H_kv, T_k, d_k) like `k`: channel n is 1 at keys[n] and 0 at every other key, so that channel n of the
/// context is the weight of keys[n], which no rounding of other values hides. Right for every core that is linear in v.
/// At most d_k keys at a time.
at::Tensor unit_values(const at::Tensor& k, const std::vector<std::int64_t>& keys);

}  // namespace attn
