#include "attention/alibi.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

namespace attn {

at::Tensor alibi_slopes(std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < power; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  }
  for (std::int64_t h = 0; h < heads - power; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(2 * h + 1) / static_cast<double>(2 * power)));
  }
  return at::tensor(slopes, at::kDouble);
}

at::Tensor alibi_bias(std::int64_t heads, std::int64_t query_len, std::int64_t key_len, const at::TensorOptions& like) {
  const at::Tensor i = at::arange(key_len - query_len, key_len, at::kDouble).unsqueeze(1);  // (T_q, 1)
  const at::Tensor j = at::arange(key_len, at::kDouble);                                    // (T_k)
  return (alibi_slopes(heads).view({-1, 1, 1}) * -(i - j).abs()).to(like);                  // (H, T_q, T_k)
}

}  // namespace attn
