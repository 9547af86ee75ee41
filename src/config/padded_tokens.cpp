#include "config/padded_tokens.h"

#include <stdexcept>

namespace attn {
namespace {

template <typename Item>
void fill_up(std::vector<Item>& items, std::int64_t T, PaddingSide side, const Item& filler) {
  const std::int64_t missing = T - static_cast<std::int64_t>(items.size());
  if (missing < 0) throw std::logic_error("an item is longer than the length that it is to be filled up to");
  const auto place = side == PaddingSide::kLeft ? items.begin() : items.end();
  items.insert(place, static_cast<std::size_t>(missing), filler);
}

}  // namespace

Tokens padded_to(Tokens tokens, std::int64_t T, PaddingSide side) {
  for (auto& ids : tokens.ids) fill_up(ids, T, side, kPaddingId);
  for (auto& labels : tokens.labels) fill_up(labels, T, side, std::string(kPaddingLabel));
  return tokens;
}

}  // namespace attn
