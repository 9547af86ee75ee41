// Replacing the tokens from some place on and running the layer again: what causality and mask-control look at.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "checks/check_context.h"
#include "checks/sampling.h"

namespace attn {

/// How the tokens from the cut on are replaced. One kind alone can miss a leak: one that is even in x survives a sign
/// flip, one behind a normalisation survives scaling.
enum class Change { kRedrawn, kSignFlipped, kScaled };
inline constexpr std::array kChanges{Change::kRedrawn, Change::kSignFlipped, Change::kScaled};

/// Replace the tokens from `cut` on.
struct Trial {
  std::int64_t cut = 1;
  Change change = Change::kRedrawn;
  std::int64_t item = 0;  ///< of which batch item; run_trials() takes the items in turn.
};

/// "when tokens 4 and later are redrawn".
std::string describe(const Trial& trial);

/// What a batch of trials did: outputs, and which of them moved.
struct Moved {
  at::Tensor base, changed;  ///< (n, T, d_model)
  at::Tensor bits;           ///< bool: not the same bits, see other_bits(). What must not move is judged by this.
  at::Tensor values;         ///< bool: not the same number. What must move is judged by this: 0 and -0 are one number.
  at::Tensor before_cut;     ///< (n, T, 1) bool
};

/// Runs all trials in batches of one shape, and hands each batch to `take`. A batch has as many slots as the run itself
/// has batch items, or as fit into kSmallBatchBytes. Each is compared with an unchanged run of the same batched shape,
/// slot by slot: in another slot or another shape the same item may have other last bits.
/// `input`: the context's, or some of its items.
void run_trials(CheckContext& context, Subject& subject, const AttentionInput& input, const std::vector<Trial>& trials,
                const std::function<void(const Moved&, const std::vector<Trial>&)>& take);

}  // namespace attn
