#include "config/mask_rows.h"

#include <cstdlib>

namespace attn {
namespace {

bool own_mask_shows(const RowsMask& mask, std::int64_t i, std::int64_t j) {
  return i < mask.queries && j < mask.keys && mask.visible[static_cast<std::size_t>(i * mask.keys + j)];
}
bool own_mask_shows(const PrefixMask& mask, std::int64_t i, std::int64_t j) {
  return j <= i || (i < mask.length && j < mask.length);
}
bool own_mask_shows(const DocumentMask& mask, std::int64_t i, std::int64_t j) {
  std::int64_t end = 0;
  for (const std::int64_t length : mask.lengths) {
    end += length;
    if (i < end || j < end) return i < end && j < end;  // one of them is in this document: the other must be, too
  }
  return true;
}
bool own_mask_shows(const DilatedMask& mask, std::int64_t i, std::int64_t j) {
  return std::abs(i - j) % mask.stride == 0;
}
bool own_mask_shows(const BidirectionalMask&, std::int64_t, std::int64_t) { return true; }

/// Query i and key j of item b, positions in their sequences.
bool may_look(const RunConfig& config, std::int64_t b, std::int64_t i, std::int64_t j) {
  const AttentionConfig& layer = config.attention;
  if (!is_real_key(config, b, j)) return false;
  if (layer.causal && j > i) return false;
  if (layer.window && std::abs(i - j) >= *layer.window) return false;
  if (!layer.mask) return true;
  return std::visit([i, j](const auto& mask) { return own_mask_shows(mask, i, j); }, *layer.mask);
}

}  // namespace

ItemRows count_rows(const RunConfig& config, std::int64_t b) {
  ItemRows rows;
  const std::int64_t T_k = key_length(config);
  std::vector<bool> seen(static_cast<std::size_t>(T_k), false);
  for (std::int64_t i = 0; i < config.T; ++i) {
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < T_k; ++j) {
      if (!may_look(config, b, i, j)) continue;
      ++count;
      seen[static_cast<std::size_t>(j)] = true;
    }
    rows.visible.push_back(count);
    if (count == 0) rows.hidden.push_back(i);
    const bool has_itself = !config.memory_length && is_real_key(config, b, i);
    if (has_itself && count > 0 && !may_look(config, b, i, i)) rows.without_itself.push_back(i);
  }
  for (std::int64_t j = 0; j < T_k; ++j) {
    if (!seen[static_cast<std::size_t>(j)] && is_real_key(config, b, j)) rows.unseen.push_back(j);
  }
  return rows;
}

std::size_t count_later_keys(const RowsMask& mask) {
  std::size_t later = 0;
  for (std::int64_t i = 0; i < mask.queries; ++i) {
    for (std::int64_t j = i + 1; j < mask.keys; ++j) later += own_mask_shows(mask, i, j) ? 1 : 0;
  }
  return later;
}

}  // namespace attn
