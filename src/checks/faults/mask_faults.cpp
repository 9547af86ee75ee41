// Faults of the causal mask, and of how any mask is applied.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "checks/faults/ruled_masks.h"

namespace attn {
namespace {

constexpr std::int64_t kLongestRight = 8;

/// A fault of the causal part: `causal` takes its place, window, own mask and padding stay.
MaskRuleOf other_causal(bool (*causal)(const MaskedPair&)) {
  return [causal](const RunConfig&) {
    return [causal](const MaskedPair& pair) {
      const bool visible = pair.config.causal ? causal(pair) : true;
      return visible && window_allows(pair) && own_mask_allows(pair) && pair.key_is_token;
    };
  };
}

bool nothing_hidden(const MaskedPair&) { return true; }

bool next_too(const MaskedPair& pair) { return pair.key <= pair.query + 1; }

bool not_itself(const MaskedPair& pair) { return pair.key < pair.query; }

bool upper(const MaskedPair& pair) { return pair.key >= pair.query; }

/// The lower right block is open.
bool block_open(const MaskedPair& pair) {
  const MaskPlace& place = pair.place;
  const bool in_block =
      pair.query - place.first_query >= place.query_len / 2 && pair.key - place.first_key >= place.key_len / 2;
  return in_block || pair.key <= pair.query;
}

bool open_from_the_ninth(const MaskedPair& pair) { return pair.key >= kLongestRight || pair.key <= pair.query; }

/// Causal whatever the config says: taking the masks off does not take this one off.
bool always_causal(const MaskedPair& pair) {
  return pair.key <= pair.query && window_allows(pair) && own_mask_allows(pair) && pair.key_is_token;
}

/// A causal layer has the right mask: there the fault shows only when the masks are taken off, by a token that padding
/// does not hide and the first query sees then.
std::string needs_an_open_future(const RunConfig& run) {
  if (!run.attention.causal) return masks_otherwise(always_causal, run) ? "" : "no query sees a later key";
  std::string missing = needs_a_future(run);
  if (!missing.empty()) return missing;
  const DeclaredPairs pairs(run);
  for (std::int64_t item = 0; item < pairs.items(); ++item) {
    for (std::int64_t key = 1; key < pairs.keys(); ++key) {
      if (pairs.is_token(item, key)) return "";
    }
  }
  return "padding leaves the first token alone";
}

/// The last query that sees a key does not see the middle one of those that it sees.
MaskRule middle_hidden(const RunConfig& run) {
  DeclaredRow last{0, -1, {}};
  some_row(run, [&](const DeclaredRow& row) {
    if (!row.keys.empty() && row.query >= last.query) last = row;
    return false;
  });
  const std::int64_t query = last.query, key = last.keys.empty() ? -1 : last.keys[(last.keys.size() - 1) / 2];
  return [=](const MaskedPair& pair) {
    const bool declared = causal_allows(pair) && window_allows(pair) && own_mask_allows(pair) && pair.key_is_token;
    return declared && !(pair.query == query && pair.key == key);
  };
}

struct FiniteFill : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const override {
    return mask.has_value() ? scores.masked_fill(mask->logical_not(), -50.0) : scores * 1;
  }
};

/// exp(-50) is 2e-22; the smallest number of float16 is 6e-8.
std::string needs_small_numbers(const RunConfig& run) {
  return run.dtype == Dtype::kFloat16 ? "exp(-50) is exactly 0 in float16" : "";
}

std::string needs_more_than_8_tokens(const RunConfig& run) {
  return run.T <= kLongestRight ? "T is " + std::to_string(run.T) + ": the mask is right up to 8" : "";
}

}  // namespace

std::vector<FaultEntry> mask_faults() {
  const std::vector<std::string> mistaken{"masked-weights", "effective-mask"};
  return {
      ruled_fault(
          {"mask-none", "nothing is hidden, whatever the masks say", {"masked-weights", "causality", "effective-mask"}},
          {}, nothing_hidden),
      ruled_fault({"mask-leaks-one-key", "the diagonal is shifted: each query sees the next key", mistaken},
                  {needs_a_future}, other_causal(next_too)),
      ruled_fault({"mask-hides-oneself",
                   "the diagonal is shifted: no query sees its own key",
                   {"masked-weights", "first-token", "effective-mask"}},
                  {needs_causal}, other_causal(not_itself)),
      ruled_fault({"mask-upper-lower-swapped", "each query sees itself and what comes after", mistaken},
                  {needs_a_future}, other_causal(upper)),
      ruled_fault({"mask-block-forgotten", "the lower right block of the causal mask is missing", mistaken},
                  {needs_a_future}, other_causal(block_open)),
      ruled_fault({"mask-right-up-to-8", "the causal mask hides no key from the ninth on", mistaken},
                  {needs_a_future, needs_more_than_8_tokens}, other_causal(open_from_the_ninth)),
      {{"mask-fill-minus-50", "hidden scores are -50 instead of -inf", {"masked-weights"}},
       {needs_half_hidden_row, needs_small_numbers},
       core_fault<FiniteFill>()},
      ruled_fault({"mask-hides-visible-key",
                   "the last query does not see the key in the middle",
                   {"masked-weights", "effective-mask", "sdpa-forward"}},
                  {}, middle_hidden),
      {{"mask-always-on", "a causal mask stays on where there should be none", {"mask-control"}},
       {needs_an_open_future},
       ruled_planting([](const RunConfig&) { return MaskRule(always_causal); })},
  };
}

}  // namespace attn
