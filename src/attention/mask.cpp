#include "attention/mask.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"

namespace attn {
namespace {

/// Positions of queries as a column and of keys as a row, so that a comparison of the two is (T_q, T_k).
struct PositionGrid {
  at::Tensor i, j;
};

PositionGrid positions_of(const MaskPlace& place, at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  return {at::arange(place.first_query, place.first_query + place.query_len, options).unsqueeze(1),
          at::arange(place.first_key, place.first_key + place.key_len, options).unsqueeze(0)};
}

struct OwnMask {
  MaskPlace place;
  at::Device device;

  at::Tensor operator()(const BidirectionalMask&) const {
    return at::ones({place.query_len, place.key_len}, at::TensorOptions().dtype(at::kBool).device(device));
  }

  at::Tensor operator()(const PrefixMask& mask) const {
    const auto [i, j] = positions_of(place, device);
    return j.le(i).logical_or(j.lt(mask.length));
  }

  at::Tensor operator()(const DocumentMask& mask) const {
    std::vector<std::int64_t> ends;
    std::int64_t end = 0;
    for (const std::int64_t length : mask.lengths) ends.push_back(end += length);
    const at::Tensor borders = at::tensor(ends, at::kLong).to(device);
    const auto [i, j] = positions_of(place, device);
    // The number of documents that have ended at a position, or before it.
    return at::bucketize(i, borders, /*out_int32=*/false, /*right=*/true).eq(at::bucketize(j, borders, false, true));
  }

  at::Tensor operator()(const DilatedMask& mask) const {
    const auto [i, j] = positions_of(place, device);
    return (i - j).remainder(mask.stride).eq(0);
  }

  at::Tensor operator()(const RowsMask& mask) const {
    if (place.first_query + place.query_len > mask.queries || place.first_key + place.key_len > mask.keys) {
      throw ShapeError("mask: has " + std::to_string(mask.queries) + " rows of " + std::to_string(mask.keys) +
                       " keys, expected at least " + std::to_string(place.first_query + place.query_len) + " of " +
                       std::to_string(place.first_key + place.key_len));
    }
    at::Tensor rows = at::empty({mask.queries, mask.keys}, at::kBool);
    std::copy(mask.visible.begin(), mask.visible.end(), rows.data_ptr<bool>());
    return rows.narrow(0, place.first_query, place.query_len).narrow(1, place.first_key, place.key_len).to(device);
  }
};

}  // namespace

MaskPlace bottom_right(std::int64_t query_len, std::int64_t key_len) {
  return {query_len, key_len, key_len - query_len, 0};
}

at::Tensor causal_mask(std::int64_t query_len, std::int64_t key_len) {
  return at::ones({query_len, key_len}, at::kBool).tril(key_len - query_len);
}

at::Tensor window_mask(const MaskPlace& place, std::int64_t window, bool both_sides, at::Device device) {
  const auto [i, j] = positions_of(place, device);
  const at::Tensor distance = i - j;
  return (both_sides ? distance.abs() : distance).lt(window);
}

at::Tensor own_mask(const MaskConfig& mask, const MaskPlace& place, at::Device device) {
  return std::visit(OwnMask{place, device}, mask);
}

std::optional<at::Tensor> both_masks(const std::optional<at::Tensor>& a, const std::optional<at::Tensor>& b) {
  if (!a.has_value()) return b;
  if (!b.has_value()) return a;
  return a->logical_and(*b);
}

}  // namespace attn
