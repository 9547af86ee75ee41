// Faults of keys and values that are kept from call to call. A run of all tokens at once shows none of them.
#include <ATen/ATen.h>

#include <algorithm>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "checks/faults/ruled_masks.h"
#include "checks/reference/may_look.h"

namespace attn {
namespace {

constexpr std::int64_t kTokenAxis = -2;  ///< of keys and values

/// Layers that keep their keys in a faulty cache.
template <typename Layer, typename Cache>
struct WithCache : Layer {
  using Layer::Layer;
  std::unique_ptr<KeyValueCache> make_cache() const override { return std::make_unique<Cache>(); }
};

/// Position 0 again, but the keys stay.
struct StaleCache : KeyValueCache {
  void reset() override { tokens_seen_ = 0; }
};

struct ForgetfulCache : KeyValueCache {
  void keep_last(std::int64_t count) override { KeyValueCache::keep_last(std::max<std::int64_t>(0, count - 1)); }
};

struct EndlessCache : KeyValueCache {
  void keep_last(std::int64_t) override {}
};

template <typename Layer>
using StaleAfterReset = WithCache<Layer, StaleCache>;

template <typename Layer>
using DropsOneTooMany = WithCache<Layer, ForgetfulCache>;

/// From the second call on neither the mask nor the cache knows of the window.
template <typename Layer>
struct WindowForgotten : WithCache<Layer, EndlessCache> {
  using WithCache<Layer, EndlessCache>::WithCache;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    const std::optional<at::Tensor> right = Layer::mask(place, real_keys);
    if (place.first_query == 0) return right;
    return ruled_mask(allowed_without_window, this->config_, place, real_keys, right);
  }
};

/// Queries stand at the keys' beginning instead of their end.
template <typename Layer>
struct TopLeft : Layer {
  using Layer::Layer;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    return Layer::mask({place.query_len, place.key_len, place.first_key, place.first_key}, real_keys);
  }
};

/// Base of the faults of what queries look at once there are earlier tokens.
template <typename Layer>
struct OtherMemory : Layer {
  using Layer::Layer;
  QueryKeyValue remember(KeyValueCache& cache, const QueryKeyValue& heads, const at::Tensor& real_keys) override {
    const std::int64_t before = cache.k().defined() ? cache.k().size(kTokenAxis) : 0;
    const QueryKeyValue right = Layer::remember(cache, heads, real_keys);
    return before == 0 ? right : QueryKeyValue{right.q, changed(right.k, before), changed(right.v, before)};
  }
  /// `all` (..., T_k, d_k), of which `before` were there already.
  virtual at::Tensor changed(const at::Tensor& all, std::int64_t before) const = 0;
};

/// The keys of a call are kept twice, and push as many out at the other end.
template <typename Layer>
struct AppendedTwice : OtherMemory<Layer> {
  using OtherMemory<Layer>::OtherMemory;
  at::Tensor changed(const at::Tensor& all, std::int64_t before) const override {
    const std::int64_t twice = std::min(before, all.size(kTokenAxis) - before);
    return at::cat({all.slice(kTokenAxis, twice), all.slice(kTokenAxis, -twice)}, kTokenAxis);
  }
};

template <typename Layer>
struct LastKeyLost : OtherMemory<Layer> {
  using OtherMemory<Layer>::OtherMemory;
  at::Tensor changed(const at::Tensor& all, std::int64_t before) const override {
    const at::Tensor known = at::ones({all.size(kTokenAxis), 1}, all.options());
    known[before - 1].zero_();
    return all * known;
  }
};

std::string needs_kept_keys(const RunConfig& run) {
  return run.attention.window == 1 ? "a window of 1 keeps no key" : "";
}

/// A key that is kept until the query that sees it.
std::string needs_earlier_key(const RunConfig& run) {
  const bool some = some_visible_pair(run, [](std::int64_t query, std::int64_t key) { return key < query; });
  return some ? "" : "no query sees an earlier key";
}

std::string needs_key_before(const RunConfig& run) {
  const bool some = some_visible_pair(run, [](std::int64_t query, std::int64_t key) { return key == query - 1; });
  return some ? "" : "no query sees the key before its own";
}

std::string needs_full_window(const RunConfig& run) {
  if (!run.attention.window.has_value()) return "there is no window";
  if (std::string missing = needs_kept_keys(run); !missing.empty()) return missing;
  const std::int64_t oldest = *run.attention.window - 1;
  const bool some = some_visible_pair(run, [&](std::int64_t query, std::int64_t key) { return query - key == oldest; });
  return some ? "" : "no query sees the oldest key of its window";
}

/// A pair that only the window hides.
std::string needs_hiding_window(const RunConfig& run) {
  if (!run.attention.window.has_value()) return "there is no window";
  return masks_otherwise(allowed_without_window, run) ? "" : "the window hides nothing";
}

/// Whether, token by token, some query sees other keys from the beginning of those that are kept.
std::string needs_corners_apart(const RunConfig& run) {
  const DeclaredPairs pairs(run);
  const std::int64_t kept = run.attention.window.value_or(run.T) - 1;
  for (std::int64_t item = 0; item < pairs.items(); ++item) {
    for (std::int64_t query = 1; query < run.T; ++query) {
      const std::int64_t first = std::max<std::int64_t>(0, query - kept);
      for (std::int64_t key = first; key <= query; ++key) {
        const bool wrong = pairs.is_token(item, key) && may_look_at(run.attention, first, key);
        if (wrong != pairs.visible(item, query, key)) return "";
      }
    }
  }
  return "queries see the same from the first place as from the last";
}

}  // namespace

std::vector<FaultEntry> cache_faults() {
  const std::vector<std::string> seen{"kv-cache"};
  return {
      {{"cache-top-left", "with a cache the mask is aligned to its first key, not its last", seen},
       {needs_pieces, needs_corners_apart},
       layer_fault<TopLeft>()},
      {{"cache-appended-twice", "the keys of a call are kept twice and push the oldest out", seen},
       {needs_pieces, needs_earlier_key},
       layer_fault<AppendedTwice>()},
      {{"cache-last-key-lost", "the last key and value of the call before are 0", seen},
       {needs_pieces, needs_key_before},
       layer_fault<LastKeyLost>()},
      {{"cache-stale-after-reset", "a reset leaves the keys where they are", seen},
       {needs_pieces, needs_kept_keys},
       layer_fault<StaleAfterReset>()},
      {{"cache-drops-one-too-many", "with a window the cache drops a key that is needed once more", seen},
       {needs_pieces, needs_full_window},
       layer_fault<DropsOneTooMany>()},
      {{"cache-forgets-window", "with a cache the window hides nothing", seen},
       {needs_pieces, needs_hiding_window},
       layer_fault<WindowForgotten>()},
  };
}

}  // namespace attn
