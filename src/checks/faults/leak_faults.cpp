// One pair of query and key, of one head and batch item, that the mask does not hide; and what else crosses the
// mask in small portions.
#include <ATen/ATen.h>

#include <algorithm>

#include "checks/faults/fault.h"
#include "checks/faults/faulty_cores.h"
#include "experiment/random_input.h"

namespace attn {
namespace {

template <typename Place>
Planting open_pair(Place place) {
  return sized_core_fault([=](const RunConfig& run) { return std::make_shared<const OpenPair>(place(run)); });
}

/// Any of the pairs that a causal mask hides, by the run's seed.
LeakedPair random_pair(const RunConfig& run) {
  const auto below = [&](std::int64_t limit, std::uint64_t use) {
    const std::int64_t some = std::max<std::int64_t>(1, limit);  // of one token nothing is hidden: a pair beyond it
    return random_integers({1}, some, run.seed + use, RandomStream::kChecks).item<std::int64_t>();
  };
  LeakedPair pair{below(run.B, 1), below(run.attention.H, 2), below(run.T - 1, 3), 0};
  pair.key = pair.query + 1 + below(run.T - 1 - pair.query, 4);
  return pair;
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
      {{"leak-corner-first", "query 0 of the first head and item sees key 1", seen},
       {needs_a_future},
       open_pair([](const RunConfig&) {
         return LeakedPair{0, 0, 0, 1};
       })},
      {{"leak-corner-far", "query 0 of the first head and the last item sees the last key", seen},
       {needs_a_future},
       open_pair([](const RunConfig& run) {
         return LeakedPair{run.B - 1, 0, 0, run.T - 1};
       })},
      {{"leak-corner-last", "the last query but one of the last head and item sees the last key", seen},
       {needs_a_future},
       open_pair([](const RunConfig& run) {
         return LeakedPair{run.B - 1, run.attention.H - 1, run.T - 2, run.T - 1};
       })},
      {{"leak-random", "one pair of query and key, drawn from the seed, is not hidden", seen},
       {needs_a_future},
       open_pair(random_pair)},
      {{"future-mixed-in-1e-6",
        "a millionth of the mean of all values, future ones included, comes in",
        {"causality", "sdpa-forward"}},
       {needs_fine_numbers},
       core_fault<FutureMixedIn>()},
      {{"leak-in-gradient-alone",
        "outputs are right, but their gradient reaches the next token",
        {"causality-gradient", "sdpa-backward", "gradient"}},
       {needs_two_tokens},
       core_fault<GradientOfTheNext>()},
  };
}

}  // namespace attn
