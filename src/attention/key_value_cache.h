// Keys and values of the tokens that a layer has seen, so that a new token needs only its own projections.
// Its functions are virtual for faults to be planted in.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace attn {

/// Of one batch and one layer. With a sliding window it holds no more than the keys that a later query can see.
/// Shapes for a multi-head layer; a single-head layer has no H_kv axis.
class KeyValueCache {
 public:
  virtual ~KeyValueCache() = default;

  /// New tokens at the end. k, v (B, H_kv, n, d_k); real_keys (B, n) bool, undefined: all are tokens.
  /// Throws ShapeError when they do not fit what is there.
  virtual void append(const at::Tensor& k, const at::Tensor& v, const at::Tensor& real_keys = {});

  /// Forgets all but the last `count` keys. Positions go on.
  virtual void keep_last(std::int64_t count);

  /// Empty again, position 0.
  virtual void reset();

  const at::Tensor& k() const { return k_; }  ///< (B, H_kv, n, d_k); undefined while empty.
  const at::Tensor& v() const { return v_; }
  const at::Tensor& real_keys() const { return real_keys_; }  ///< (B, n); undefined: all are tokens.

  std::int64_t tokens_seen() const { return tokens_seen_; }  ///< position of the next token.
  std::int64_t first_key() const;                            ///< position of the oldest key that is still there.
  std::int64_t bytes() const;                                ///< of keys and values.

 protected:
  at::Tensor k_, v_, real_keys_;
  std::int64_t tokens_seen_ = 0;
};

}  // namespace attn
