#include "attention/attention_input.h"

namespace attn {

AttentionInput tokens_of(const AttentionInput& input, std::int64_t first, std::int64_t count) {
  constexpr std::int64_t kTokenAxis = 1;  // of x and of real_keys
  AttentionInput tokens = input;
  tokens.x = input.x.narrow(kTokenAxis, first, count);
  const bool hides_tokens_of_x = input.real_keys.defined() && !input.memory.defined();
  if (hides_tokens_of_x) tokens.real_keys = input.real_keys.narrow(kTokenAxis, first, count);
  return tokens;
}

}  // namespace attn
