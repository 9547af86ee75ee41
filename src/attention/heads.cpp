#include "attention/heads.h"

namespace attn {

at::Tensor split_heads(const at::Tensor& tokens, std::int64_t heads) {
  const std::int64_t width = tokens.size(-1) / heads;
  return tokens.view({tokens.size(0), tokens.size(1), heads, width}).transpose(1, 2);  // (B, H, T, width)
}

at::Tensor merge_heads(const at::Tensor& heads) {
  const std::int64_t width = heads.size(1) * heads.size(3);
  return heads.transpose(1, 2).contiguous().view({heads.size(0), heads.size(2), width});  // (B, T, H*d_k)
}

QueryKeyValue split_thirds(const at::Tensor& qkv) {
  const std::vector<at::Tensor> thirds = qkv.chunk(3, -1);
  return {thirds[0], thirds[1], thirds[2]};
}

}  // namespace attn
