#include "attention/key_value_cache.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "attention/shapes.h"

namespace attn {
namespace {

constexpr std::int64_t kTokenAxis = -2;  ///< of keys and values

at::Tensor last_of(const at::Tensor& tensor, std::int64_t axis, std::int64_t count) {
  const std::int64_t kept = std::min(count, tensor.size(axis));
  // A copy: a view would hold on to the whole.
  return tensor.narrow(axis, tensor.size(axis) - kept, kept).clone();
}

at::Tensor all_real(const at::Tensor& k) {
  return at::ones({k.size(0), k.size(kTokenAxis)}, k.options().dtype(at::kBool));
}

}  // namespace

void KeyValueCache::append(const at::Tensor& k, const at::Tensor& v, const at::Tensor& real_keys) {
  check_shape(v, "v", k.sizes().vec());
  if (real_keys.defined()) check_shape(real_keys, "real_keys", {k.size(0), k.size(kTokenAxis)});
  if (!k_.defined()) {
    k_ = k;
    v_ = v;
    real_keys_ = real_keys;
  } else {
    std::vector<std::int64_t> expected = k_.sizes().vec();
    expected[expected.size() - 2] = kAnySize;
    check_shape(k, "k", expected);
    check_same_kind(k, "k", k_, "the cache");
    if (real_keys.defined() || real_keys_.defined()) {
      real_keys_ =
          at::cat({real_keys_.defined() ? real_keys_ : all_real(k_), real_keys.defined() ? real_keys : all_real(k)}, 1);
    }
    k_ = at::cat({k_, k}, kTokenAxis);
    v_ = at::cat({v_, v}, kTokenAxis);
  }
  tokens_seen_ += k.size(kTokenAxis);
}

void KeyValueCache::keep_last(std::int64_t count) {
  if (!k_.defined() || k_.size(kTokenAxis) <= count) return;
  k_ = last_of(k_, kTokenAxis, count);
  v_ = last_of(v_, kTokenAxis, count);
  if (real_keys_.defined()) real_keys_ = last_of(real_keys_, 1, count);
}

void KeyValueCache::reset() {
  k_ = v_ = real_keys_ = at::Tensor();
  tokens_seen_ = 0;
}

std::int64_t KeyValueCache::first_key() const {
  return k_.defined() ? tokens_seen_ - k_.size(kTokenAxis) : tokens_seen_;
}

std::int64_t KeyValueCache::bytes() const {
  return k_.defined() ? static_cast<std::int64_t>(k_.nbytes() + v_.nbytes()) : 0;
}

}  // namespace attn
