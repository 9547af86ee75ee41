// A mask of one's own, as plain data. It speaks of positions in the sequence, so it holds for every length, and it is
// combined with `causal`, `window` and padding by AND: no mask switches another off.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace attn {

/// Given cell by cell. Row i says which keys the query at position i may look at.
struct RowsMask {
  std::int64_t queries = 0, keys = 0;
  std::vector<bool> visible;                  ///< (queries, keys), row-major; true = may look.
  std::optional<std::filesystem::path> file;  ///< the .safetensors file they were read from; absent: from the config.
  std::string name;                           ///< of the tensor in it.

  friend bool operator==(const RowsMask&, const RowsMask&) = default;
};

/// "prefix": the first `length` tokens see each other; every later one sees itself and what is before it (prefix-LM,
/// T5 and UniLM). It opens keys that `causal` would hide, so the layer must not be causal.
struct PrefixMask {
  std::int64_t length = 1;
  friend bool operator==(const PrefixMask&, const PrefixMask&) = default;
};

/// "document": tokens of several documents in one sequence see their own document only (block-diagonal).
/// What comes after the last document is one more.
struct DocumentMask {
  std::vector<std::int64_t> lengths;
  friend bool operator==(const DocumentMask&, const DocumentMask&) = default;
};

/// "dilated": every `stride`-th key, counted from the query itself: (i - j) % stride == 0.
struct DilatedMask {
  std::int64_t stride = 2;
  friend bool operator==(const DilatedMask&, const DilatedMask&) = default;
};

/// "bidirectional": every key. The layer must not be causal.
struct BidirectionalMask {
  friend bool operator==(const BidirectionalMask&, const BidirectionalMask&) = default;
};

using MaskConfig = std::variant<BidirectionalMask, PrefixMask, DocumentMask, DilatedMask, RowsMask>;

/// "bidirectional", "prefix", "document", "dilated" or "rows".
std::string mask_kind(const MaskConfig& mask);

/// Whether the mask opens keys that a causal mask hides, so that the layer must not be causal.
bool opens_the_future(const MaskConfig& mask);

}  // namespace attn
