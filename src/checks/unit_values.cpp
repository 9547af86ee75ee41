#include "checks/unit_values.h"

#include <ATen/ATen.h>

namespace attn {

at::Tensor unit_values(const at::Tensor& k, const std::vector<std::int64_t>& keys) {
  at::Tensor v = at::zeros_like(k);
  for (std::size_t n = 0; n < keys.size(); ++n) {
    v.select(2, keys[n]).select(-1, static_cast<std::int64_t>(n)).fill_(1.0);
  }
  return v;
}

}  // namespace attn
