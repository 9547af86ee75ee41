// One pair of query and key, of one head and batch item, that the mask does not hide; and what else crosses the
// mask in small portions.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "checks/faults/faulty_cores.h"
#include "experiment/random_input.h"

namespace attn {
namespace {

template <typename Place>
Planting open_pair(Place place) {
  return sized_core_fault([=](const RunConfig& run) { return std::make_shared<const OpenPair>(place(run)); });
}

/// The hidden pair that comes `number`-th in the item, row by row; absent when there are fewer.
std::optional<LeakedPair> hidden_pair(const RunConfig& run, std::int64_t item, std::int64_t number) {
  const DeclaredPairs pairs(run);
  for (std::int64_t query = 0; query < pairs.queries(); ++query) {
    for (std::int64_t key = 0; key < pairs.keys(); ++key) {
      if (pairs.visible(item, query, key)) continue;
      if (number-- == 0) return LeakedPair{item, 0, query, key};
    }
  }
  return std::nullopt;
}

std::int64_t count_hidden(const RunConfig& run, std::int64_t item) {
  const DeclaredPairs pairs(run);
  std::int64_t visible = 0;
  some_row(run, [&](const DeclaredRow& row) {
    visible += row.item == item % pairs.items() ? static_cast<std::int64_t>(row.keys.size()) : 0;
    return false;
  });
  return pairs.queries() * pairs.keys() - visible;
}

/// The first item that hides something, counted from `start` and round again.
std::int64_t hiding_item(const RunConfig& run, std::int64_t start) {
  for (std::int64_t n = 0; n < run.B; ++n) {
    if (hidden_pair(run, (start + n) % run.B, 0).has_value()) return (start + n) % run.B;
  }
  return 0;
}

LeakedPair first_pair(const RunConfig& run) { return hidden_pair(run, hiding_item(run, 0), 0).value_or(LeakedPair{}); }

/// In the row of the first one, the last.
LeakedPair far_pair(const RunConfig& run) {
  const std::int64_t item = hiding_item(run, run.B - 1);
  LeakedPair pair = hidden_pair(run, item, 0).value_or(LeakedPair{});
  const DeclaredPairs pairs(run);
  for (std::int64_t key = pair.key; key < pairs.keys(); ++key) {
    if (!pairs.visible(item, pair.query, key)) pair.key = key;
  }
  return pair;
}

LeakedPair last_pair(const RunConfig& run) {
  const std::int64_t item = hiding_item(run, run.B - 1);
  LeakedPair pair = hidden_pair(run, item, count_hidden(run, item) - 1).value_or(LeakedPair{});
  pair.head = run.attention.H - 1;
  return pair;
}

/// Any of the pairs that the mask hides, by the run's seed.
LeakedPair random_pair(const RunConfig& run) {
  const auto below = [&](std::int64_t limit, std::uint64_t use) {
    return random_integers({1}, limit, run.seed + use, RandomStream::kChecks).item<std::int64_t>();
  };
  const std::int64_t item = hiding_item(run, below(run.B, 1)), hidden = count_hidden(run, item);
  LeakedPair pair = hidden_pair(run, item, below(std::max<std::int64_t>(1, hidden), 3)).value_or(LeakedPair{});
  pair.head = below(run.attention.H, 2);
  return pair;
}

std::string needs_hidden_pair(const RunConfig& run) {
  return hidden_pair(run, hiding_item(run, 0), 0).has_value() ? "" : "no key is hidden from any query";
}

std::string needs_later_tokens(const RunConfig& run) {
  return run.memory_length.has_value() ? "keys come from a memory: there is no next token" : needs_two_tokens(run);
}

/// A millionth of the mean of all values, future ones included, comes in.
struct FutureMixedIn : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    return AttentionCore::mix_values(weights, v) + 1e-6 * for_every_query_head(v.mean(-2, /*keepdim=*/true), weights);
  }
};

/// Adds exactly 0, whose gradient reaches the value of the next token.
struct GradientOfTheNext : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor values = for_every_query_head(v, weights);
    const at::Tensor next = at::constant_pad_nd(values.slice(-2, 1), {0, 0, 0, 1});  // the last has none
    const at::Tensor of_queries = next.slice(-2, v.size(-2) - weights.size(-2));
    return AttentionCore::mix_values(weights, v) + (of_queries - of_queries.detach());
  }
};

}  // namespace

std::vector<FaultEntry> leak_faults() {
  const std::vector<std::string> seen{"masked-weights", "effective-mask"};
  return {
      {{"leak-corner-first", "the first key that is hidden from a query, in the first head, is not", seen},
       {needs_hidden_pair},
       open_pair(first_pair)},
      {{"leak-corner-far", "the last key that is hidden from the first query of the last item is not", seen},
       {needs_hidden_pair},
       open_pair(far_pair)},
      {{"leak-corner-last", "the last hidden pair of query and key, of the last head and item, is not hidden", seen},
       {needs_hidden_pair},
       open_pair(last_pair)},
      {{"leak-random", "one pair of query and key, drawn from the seed, is not hidden", seen},
       {needs_hidden_pair},
       open_pair(random_pair)},
      {{"future-mixed-in-1e-6",
        "a millionth of the mean of all values, future ones included, comes in",
        {"causality", "sdpa-forward"}},
       {needs_fine_numbers},
       core_fault<FutureMixedIn>()},
      {{"leak-in-gradient-alone",
        "outputs are right, but their gradient reaches the next token",
        {"causality-gradient", "sdpa-backward", "gradient"}},
       {needs_later_tokens},
       core_fault<GradientOfTheNext>()},
  };
}

}  // namespace attn
