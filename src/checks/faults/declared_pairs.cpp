#include "checks/faults/declared_pairs.h"

#include <algorithm>

#include "checks/reference/may_look.h"

namespace attn {

DeclaredPairs::DeclaredPairs(const RunConfig& run) : run_(run) {}

std::int64_t DeclaredPairs::items() const { return run_.padding.has_value() ? run_.B : 1; }

bool DeclaredPairs::is_token(std::int64_t item, std::int64_t key) const { return is_real_key(run_, item, key); }

bool DeclaredPairs::visible(std::int64_t item, std::int64_t query, std::int64_t key) const {
  return is_token(item, key) && may_look(run_.attention, query, key, queries(), keys());
}

bool some_row(const RunConfig& run, const std::function<bool(const DeclaredRow&)>& tell) {
  const DeclaredPairs pairs(run);
  DeclaredRow row;
  for (row.item = 0; row.item < pairs.items(); ++row.item) {
    for (row.query = 0; row.query < pairs.queries(); ++row.query) {
      row.keys.clear();
      for (std::int64_t key = 0; key < pairs.keys(); ++key) {
        if (pairs.visible(row.item, row.query, key)) row.keys.push_back(key);
      }
      if (tell(row)) return true;
    }
  }
  return false;
}

bool some_unlike_rows(const RunConfig& run, std::int64_t block) {
  std::vector<std::int64_t> first;  // the keys of the block's first row
  return some_row(run, [&](const DeclaredRow& row) {
    if (row.query % block == 0) first = row.keys;
    const bool alone = row.query % block == 0 && row.query + 1 == run.T;
    const std::size_t enough = run.attention.sink ? 1 : 2;
    return !alone && (row.keys.size() >= enough || row.keys != first);
  });
}

bool some_visible_pair(const RunConfig& run, const std::function<bool(std::int64_t query, std::int64_t key)>& tell) {
  return some_row(run, [&](const DeclaredRow& row) {
    return std::any_of(row.keys.begin(), row.keys.end(), [&](std::int64_t key) { return tell(row.query, key); });
  });
}

}  // namespace attn
