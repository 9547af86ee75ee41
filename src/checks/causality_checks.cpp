// causality and mask-control: what changing the future does to the past, with the mask on and off.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "checks/check_context.h"
#include "checks/exact_run.h"
#include "checks/future_changes.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

// Cost of all trials together, in multiply-adds. Above it each cut gets one change instead of three; if that is still
// too much, a sample of the cuts is taken. Some 20 seconds of one processor core in float32.
constexpr double kMaxMultiplyAdds = 1.5e11;

struct Plan {
  std::vector<Trial> trials;  ///< by cut
  std::string description;    ///< "all 49 cuts, 3 changes each"
};

Plan make_plan(const CheckContext& context) {
  const std::int64_t T = context.T();
  const double affordable = context.budget(kMaxMultiplyAdds) / forward_cost(context.config(), 1, T);
  const bool all_changes = static_cast<double>(T - 1) * kChanges.size() <= affordable;
  const std::vector<std::int64_t> cuts = telling_places(1, T - 1, affordable);

  Plan plan;
  std::size_t number = 0;
  for (const std::int64_t cut : cuts) {
    for (std::size_t change = 0; change < (all_changes ? kChanges.size() : 1); ++change, ++number) {
      plan.trials.push_back({cut, kChanges[all_changes ? change : number % kChanges.size()]});
    }
  }
  plan.description =
      describe_sample(cuts.size(), T - 1, "cuts") + ", " + (all_changes ? "3 changes each" : "one of 3 changes each");
  return plan;
}

/// What all trials of `causality` found.
struct Leaks {
  Comparison comparison;
  Trial first, worst;
  bool something_moved = false;  ///< at or after a cut: proof that the changes reach outputs at all.
};

void take_batch(Leaks& leaks, const Moved& moved, const std::vector<Trial>& trials) {
  const at::Tensor early = moved.before_cut.expand_as(moved.bits);
  leaks.something_moved = leaks.something_moved || moved.values.logical_and(early.logical_not()).any().item<bool>();
  leaks.comparison.compared += early.sum().item<std::int64_t>();
  const at::Tensor finite = at::isfinite(moved.base).logical_and(at::isfinite(moved.changed));
  const at::Tensor non_finite = finite.logical_not().logical_and(early);
  const at::Tensor wrong = moved.bits.logical_or(non_finite).logical_and(early);
  const std::int64_t count = wrong.sum().item<std::int64_t>();
  if (count == 0) return;

  const at::Tensor distance = (moved.changed.to(at::kDouble) - moved.base.to(at::kDouble)).abs();
  const at::Tensor errors = at::where(wrong, at::where(finite, distance, std::nan("")), -1.0);
  const std::int64_t numbers_a_slot = wrong[0].numel();
  const auto place = [&](std::int64_t flat, Trial& trial) {
    trial = trials[static_cast<std::size_t>(flat / numbers_a_slot)];
    return place_of(flat % numbers_a_slot, {1, wrong.size(1), wrong.size(2)}, kTokenAxes, trial.item);
  };
  const double largest = errors.max().item<double>();
  const bool worse = leaks.comparison.wrong == 0 || !(largest <= leaks.comparison.measured);
  if (leaks.comparison.wrong == 0) {
    leaks.comparison.where_first = place(wrong.to(at::kByte).argmax().item<std::int64_t>(), leaks.first);
  }
  if (worse) {
    leaks.comparison.measured = largest;
    leaks.comparison.where_worst = place(errors.argmax().item<std::int64_t>(), leaks.worst);
  }
  leaks.comparison.wrong += count;
  leaks.comparison.non_finite += non_finite.sum().item<std::int64_t>();
}

Leaks find_leaks(CheckContext& context, Subject& subject, const AttentionInput& input,
                 const std::vector<Trial>& trials) {
  Leaks leaks;
  leaks.comparison.limit = {0.0, "same shape, same slot: not one bit may differ"};
  run_trials(context, subject, input, trials,
             [&](const Moved& moved, const std::vector<Trial>& batch) { take_batch(leaks, moved, batch); });
  return leaks;
}

/// Whether some query may look at a later token than the first: else no cut need move anything.
bool later_tokens_matter(CheckContext& context) {
  return context.visible().narrow(-1, 1, context.T_k() - 1).any().item<bool>();
}

/// The items whose last real token comes last, and where it stands: without masks its change moves every output.
struct Movable {
  AttentionInput items;
  std::int64_t last_real = 0;
};

Movable movable_items(CheckContext& context) {
  const AttentionInput& input = context.input();
  if (!input.real_keys.defined()) return {input, context.T() - 1};
  const at::Tensor places = at::arange(context.T(), at::kLong);
  const at::Tensor last = at::where(input.real_keys.to(at::kCPU), places, -1).amax(-1);  // (B)
  Movable movable{{}, last.max().item<std::int64_t>()};
  std::vector<std::int64_t> items;
  for (std::int64_t b = 0; b < context.B(); ++b) {
    if (last[b].item<std::int64_t>() == movable.last_real) items.push_back(b);
  }
  movable.items = chosen_items(input, items);
  return movable;
}

/// mask-control: what all changes at one cut did to the outputs before it.
struct CutOutcome {
  bool moved = false, finite = true;
};

void take_cuts(std::map<std::int64_t, CutOutcome>& cuts, const Moved& moved, const std::vector<Trial>& trials) {
  for (std::size_t slot = 0; slot < trials.size(); ++slot) {
    const auto n = static_cast<std::int64_t>(slot);
    const std::int64_t cut = trials[slot].cut;
    const auto earlier = [&](const at::Tensor& tensor) { return tensor[n].narrow(0, 0, cut); };  // (cut, d_model)
    CutOutcome& outcome = cuts[cut];
    for (const at::Tensor& tensor : {moved.base, moved.changed}) {
      outcome.finite = outcome.finite && at::isfinite(earlier(tensor)).all().item<bool>();
    }
    outcome.moved = outcome.moved || earlier(moved.values).any().item<bool>();
  }
}

/// One element a cut, wrong when no change moved an earlier output, or one is not finite.
Comparison cuts_without_move(CheckContext& context, Subject& open, const AttentionInput& input,
                             const std::vector<Trial>& trials) {
  std::map<std::int64_t, CutOutcome> cuts;
  run_trials(context, open, input, trials,
             [&](const Moved& moved, const std::vector<Trial>& batch) { take_cuts(cuts, moved, batch); });
  Comparison comparison;
  comparison.limit = {0.0, "without a mask every token sees every other"};
  for (const auto& [cut, outcome] : cuts) {
    ++comparison.compared;
    if (outcome.finite && outcome.moved) continue;
    ++comparison.wrong;
    comparison.measured += 1.0;
    if (!outcome.finite) ++comparison.non_finite;
    comparison.where_worst = "(cut " + std::to_string(cut) + ")";
    if (comparison.where_first.empty()) comparison.where_first = comparison.where_worst;
  }
  return comparison;
}

}  // namespace

CheckResult check_causality(CheckContext& context) {
  const Plan plan = make_plan(context);
  Leaks leaks = find_leaks(context, context.subject(), context.input(), plan.trials);
  // Said with the number, so that nobody takes a sample for the whole.
  Findings findings("change of an earlier output, " + plan.description);
  if (!leaks.something_moved && leaks.comparison.wrong == 0 && later_tokens_matter(context)) {
    if (const std::optional<ExactRun> exact = exact_run(context)) {
      leaks = find_leaks(context, *exact->subject, exact->input, plan.trials);
      findings.note("in float64: " + to_string(context.run().dtype) + " rounds every change away");
    }
  }
  findings.add("", leaks.comparison);
  if (leaks.comparison.wrong > 0 && leaks.comparison.non_finite == 0) {
    findings.fail("not causal: output " + leaks.comparison.where_worst + " moves by " +
                  format_number(leaks.comparison.measured) + " " + describe(leaks.worst) + ", the first one is " +
                  leaks.comparison.where_first + " " + describe(leaks.first));
  }
  if (!leaks.something_moved && later_tokens_matter(context))
    findings.fail("changing tokens moves no output at all, so nothing was tested");
  return findings.result();
}

CheckResult check_mask_control(CheckContext& context) {
  const Movable movable = movable_items(context);
  if (movable.last_real < 1) return not_applicable("padding leaves the first token alone");
  const std::unique_ptr<Subject> open = context.subject().without_masks();
  if (open == nullptr) return not_applicable("the layer's masks cannot be taken off");
  open->train(false);
  // All changes of a few items, up to the middle: rounding may hide one of them.
  std::vector<Trial> trials;
  for (const std::int64_t cut : std::set<std::int64_t>{1, std::min<std::int64_t>(2, movable.last_real),
                                                       std::max<std::int64_t>(1, (movable.last_real + 1) / 2)}) {
    for (const Change change : kChanges) {
      for (std::int64_t n = 0; n < std::min<std::int64_t>(2, movable.items.x.size(0)); ++n)
        trials.push_back({cut, change});
    }
  }
  Comparison comparison = cuts_without_move(context, *open, movable.items, trials);
  Findings findings("cuts where nothing moved");
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    if (const std::optional<ExactRun> exact = exact_run(context, *open, movable.items)) {
      comparison = cuts_without_move(context, *exact->subject, exact->input, trials);
      findings.note("in float64: " + to_string(context.run().dtype) + " rounds some changes away");
    }
  }
  findings.add("", comparison);
  if (comparison.wrong > comparison.non_finite) {
    findings.fail(
        "with the mask off, changing later tokens must move earlier outputs, and does not: what keeps the layer "
        "causal is not its mask");
  }
  return findings.result();
}

}  // namespace attn
