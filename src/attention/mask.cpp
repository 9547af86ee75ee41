#include "attention/mask.h"

#include <ATen/ops/ones.h>

namespace attn {

at::Tensor causal_mask(std::int64_t query_len, std::int64_t key_len) {
  return at::ones({query_len, key_len}, at::kBool).tril(key_len - query_len);
}

}  // namespace attn
