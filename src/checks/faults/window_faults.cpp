// Faults of the sliding window.
#include <cstdlib>

#include "checks/faults/fault.h"
#include "checks/faults/ruled_masks.h"

namespace attn {
namespace {

/// The declared mask with a window that is `more` keys longer.
MaskRuleOf other_window(std::int64_t more) {
  return [more](const RunConfig&) {
    return [more](const MaskedPair& pair) {
      const bool inside =
          !pair.config.window.has_value() || std::abs(pair.query - pair.key) < *pair.config.window + more;
      return inside && allowed_without_window(pair);
    };
  };
}

/// As many keys on the other side.
bool both_sides(const MaskedPair& pair) {
  const bool causal = !pair.config.window.has_value() && !causal_allows(pair);
  return !causal && window_allows(pair) && own_mask_allows(pair) && pair.key_is_token;
}

std::string needs_window(const RunConfig& run) { return run.attention.window.has_value() ? "" : "there is no window"; }

}  // namespace

std::vector<FaultEntry> window_faults() {
  const std::vector<std::string> seen{"window", "masked-weights", "effective-mask"};
  return {
      ruled_fault({"window-one-more", "the window is one key longer", seen}, {needs_window}, other_window(1)),
      ruled_fault({"window-one-less", "the window is one key shorter", seen}, {needs_window}, other_window(-1)),
      ruled_fault({"window-forgotten", "the window hides nothing", seen}, {needs_window}, allowed_without_window),
      ruled_fault({"window-not-causal", "a window takes the place of the causal mask", seen},
                  {needs_window, needs_a_future}, both_sides),
  };
}

}  // namespace attn
