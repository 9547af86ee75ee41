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

QueryKeyValue split_qkv_widths(const at::Tensor& qkv, std::int64_t query_width) {
  const std::int64_t key_width = (qkv.size(-1) - query_width) / 2;
  return {qkv.narrow(-1, 0, query_width), qkv.narrow(-1, query_width, key_width),
          qkv.narrow(-1, query_width + key_width, key_width)};
}

at::Tensor stack_groups(const at::Tensor& heads, std::int64_t key_heads) {
  if (heads.size(1) == key_heads) return heads;
  return heads.reshape({heads.size(0), key_heads, heads.size(1) / key_heads * heads.size(2), heads.size(3)});
}

at::Tensor unstack_groups(const at::Tensor& groups, std::int64_t heads) {
  if (groups.size(1) == heads) return groups;
  return groups.view({groups.size(0), heads, groups.size(1) * groups.size(2) / heads, groups.size(3)});
}

}  // namespace attn
