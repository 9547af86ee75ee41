#include "checks/reference/may_look.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <variant>

#include "core/error.h"

namespace attn {
namespace {

/// Which document a position belongs to; what comes after the last one is one more.
std::size_t document_of(const DocumentMask& mask, std::int64_t position) {
  std::int64_t end = 0;
  for (std::size_t document = 0; document < mask.lengths.size(); ++document) {
    end += mask.lengths[document];
    if (position < end) return document;
  }
  return mask.lengths.size();
}

bool allows(const BidirectionalMask&, std::int64_t, std::int64_t) { return true; }

bool allows(const PrefixMask& mask, std::int64_t position, std::int64_t key) {
  if (position < mask.length && key < mask.length) return true;
  return key <= position;
}

bool allows(const DocumentMask& mask, std::int64_t position, std::int64_t key) {
  return document_of(mask, position) == document_of(mask, key);
}

bool allows(const DilatedMask& mask, std::int64_t position, std::int64_t key) {
  return std::abs(position - key) % mask.stride == 0;
}

bool allows(const RowsMask& mask, std::int64_t position, std::int64_t key) {
  if (position >= mask.queries || key >= mask.keys) {
    throw ShapeError("mask: has " + std::to_string(mask.queries) + " rows of " + std::to_string(mask.keys) +
                     ", query " + std::to_string(position) + " and key " + std::to_string(key) + " are outside");
  }
  return mask.visible[static_cast<std::size_t>(position * mask.keys + key)];
}

}  // namespace

std::int64_t query_position(const AttentionConfig& config, std::int64_t i, std::int64_t T_q, std::int64_t T_k) {
  if (config.causal) return i + (T_k - T_q);
  return i;
}

bool may_look_at(const AttentionConfig& config, std::int64_t position, std::int64_t key) {
  if (config.causal && key > position) return false;
  if (config.window.has_value() && std::abs(position - key) >= *config.window) return false;
  return !config.mask.has_value() || own_mask_allows(*config.mask, position, key);
}

bool own_mask_allows(const MaskConfig& mask, std::int64_t position, std::int64_t key) {
  return std::visit([&](const auto& one) { return allows(one, position, key); }, mask);
}

bool may_look(const AttentionConfig& config, std::int64_t i, std::int64_t j, std::int64_t T_q, std::int64_t T_k) {
  return may_look_at(config, query_position(config, i, T_q, T_k), j);
}

}  // namespace attn
