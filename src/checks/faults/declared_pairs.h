// Which key each query of a run may look at, asked pair by pair: what the conditions of the faults are made of.
// Private to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// The declared mask of every item: causal, window, the mask of one's own, and padding. Keeps a reference to the run.
class DeclaredPairs {
 public:
  explicit DeclaredPairs(const RunConfig& run);

  std::int64_t items() const;  ///< B with padding; 1 without, since then all items are alike.
  std::int64_t queries() const { return run_.T; }
  std::int64_t keys() const { return run_.memory_length.value_or(run_.T); }

  /// Whether the key is no padding. Where nothing is padded every item may be asked.
  bool is_token(std::int64_t item, std::int64_t key) const;
  bool visible(std::int64_t item, std::int64_t query, std::int64_t key) const;

 private:
  const RunConfig& run_;
};

/// One query of one item.
struct DeclaredRow {
  std::int64_t item = 0, query = 0;
  std::vector<std::int64_t> keys;  ///< that it may look at, in order.
};

/// Whether `tell` is true of some row; stops at the first one.
bool some_row(const RunConfig& run, const std::function<bool(const DeclaredRow&)>& tell);

/// Whether two tokens of one block of `block` neighbours have contexts that differ: not both without a key, nor both
/// with the same one alone, whose weight is 1.
bool some_unlike_rows(const RunConfig& run, std::int64_t block);

/// Whether some query may look at a key of which `tell` is true.
bool some_visible_pair(const RunConfig& run, const std::function<bool(std::int64_t query, std::int64_t key)>& tell);

}  // namespace attn
