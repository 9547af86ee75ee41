// Faulty cores that take a size or a place, used by more than one fault or by tests that try many.
// Private to this room and its tests.
#pragma once

#include <cstdint>

#include "attention/attention_core.h"

namespace attn {

/// Multiplies scores by another factor than it is told.
struct OtherScale : AttentionCore {
  explicit OtherScale(double other) : factor(other) {}
  double factor;

 protected:
  at::Tensor scale_scores(const at::Tensor& scores, double scale) const override;
};

/// A query and a key that it may not see, of one head and batch item.
struct LeakedPair {
  std::int64_t batch = 0, head = 0, query = 0, key = 0;
};

/// The mask does not hide this one pair. Runs that are too small to hold the pair are honest.
struct OpenPair : AttentionCore {
  explicit OpenPair(const LeakedPair& opened) : pair(opened) {}
  LeakedPair pair;

 protected:
  at::Tensor mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const override;
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override;

 private:
  std::optional<at::Tensor> opened(const std::optional<at::Tensor>& mask, const at::Tensor& scores) const;
};

/// The value of the pair's key is added to the query's context, `share` times; the weights show nothing.
struct MixedInPair : AttentionCore {
  MixedInPair(const LeakedPair& leaked, double mixed_in) : pair(leaked), share(mixed_in) {}
  LeakedPair pair;
  double share;

 protected:
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override;
};

/// The pair's key gets the weight `share`, taken from the query's own.
struct WeightedPair : AttentionCore {
  WeightedPair(const LeakedPair& leaked, double weight) : pair(leaked), share(weight) {}
  LeakedPair pair;
  double share;

 protected:
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override;
};

/// Keys or values with a head for every query head of `like` (B, H, ...): (B, H_kv, T_k, d_k) to (B, H, T_k, d_k).
/// Without a head axis, and where there are as many already, nothing happens.
at::Tensor for_every_query_head(const at::Tensor& keys, const at::Tensor& like);

/// (T, T) or larger tensors `like`: true at the pair alone; all false where the pair is beyond them.
at::Tensor only_pair(const at::Tensor& like, const LeakedPair& pair);

}  // namespace attn
