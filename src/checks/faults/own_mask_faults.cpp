// Faults of the config's own mask.
#include "checks/faults/fault.h"
#include "checks/faults/ruled_masks.h"
#include "checks/reference/may_look.h"

namespace attn {
namespace {

bool inverted(const MaskedPair& pair) {
  const bool own = !pair.config.mask.has_value() || !own_mask_allows(pair);
  return own && causal_allows(pair) && window_allows(pair) && pair.key_is_token;
}

bool forgotten(const MaskedPair& pair) { return causal_allows(pair) && window_allows(pair) && pair.key_is_token; }

bool replaces_causal(const MaskedPair& pair) {
  const bool causal = pair.config.mask.has_value() || causal_allows(pair);
  return causal && window_allows(pair) && own_mask_allows(pair) && pair.key_is_token;
}

bool transposed(const MaskedPair& pair) {
  const bool own = !pair.config.mask.has_value() || own_mask_allows(*pair.config.mask, pair.key, pair.query);
  return own && causal_allows(pair) && window_allows(pair) && pair.key_is_token;
}

std::string needs_own_mask(const RunConfig& run) {
  return run.attention.mask.has_value() ? "" : "the config has no mask of its own";
}

std::string needs_square_mask(const RunConfig& run) {
  const bool square = run.memory_length.value_or(run.T) == run.T;
  return square ? "" : "the mask is not square: its transpose would not fit";
}

}  // namespace

std::vector<FaultEntry> own_mask_faults() {
  const std::vector<std::string> seen{"masked-weights", "effective-mask"};
  return {
      ruled_fault({"own-mask-inverted", "true in the config's own mask hides", seen}, {needs_own_mask}, inverted),
      ruled_fault({"own-mask-forgotten", "the config's own mask hides nothing", seen}, {needs_own_mask}, forgotten),
      ruled_fault({"own-mask-replaces-causal", "the config's own mask switches the causal mask off", seen},
                  {needs_own_mask, needs_a_future}, replaces_causal),
      ruled_fault({"own-mask-transposed", "rows of the config's own mask are taken for columns", seen},
                  {needs_own_mask, needs_square_mask}, transposed),
  };
}

}  // namespace attn
