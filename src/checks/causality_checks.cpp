// causality and mask-control: what changing the future does to the past, with the mask on and off.
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "checks/check_context.h"
#include "core/text.h"

namespace attn {
namespace {

/// How the tokens from the cut on are replaced. One kind alone can miss a leak: one that is even in x survives a sign
/// flip, one behind a normalisation survives scaling.
enum class Change { kRedrawn, kSignFlipped, kScaled };
constexpr std::array kChanges{Change::kRedrawn, Change::kSignFlipped, Change::kScaled};

std::string to_words(Change change) {
  switch (change) {
    case Change::kRedrawn:
      return "are redrawn";
    case Change::kSignFlipped:
      return "change their sign";
    case Change::kScaled:
      return "are tripled";
  }
  return "change";
}

/// Replace the tokens from `cut` on of batch item `item`.
struct Trial {
  std::int64_t item = 0;
  std::int64_t cut = 1;
  Change change = Change::kRedrawn;
};

// Cost of all trials together, in multiply-adds. Above it each cut gets one change instead of three; if that is still
// too much, a sample of the cuts is taken. About a minute of one processor core in float32.
constexpr double kMaxMultiplyAdds = 1.5e12;
// Memory of one batched run.
constexpr double kMaxBatchBytes = 512.0 * 1024 * 1024;

double trial_cost(const AttentionConfig& config, std::int64_t T) {
  const double length = static_cast<double>(T);
  const double width = static_cast<double>(config.heads_width());
  const double projections = 4.0 * length * static_cast<double>(config.d_model) * width;
  // Tensors of T x T numbers are bound by memory: passing over one costs about as much as 16 multiply-adds a number.
  const double pairs = length * length * (2.0 * width + 6.0 * 16.0 * static_cast<double>(config.H));
  return projections + pairs;
}

double trial_bytes(const AttentionConfig& config, std::int64_t T, std::int64_t element_size) {
  const double length = static_cast<double>(T);
  const double per_token = static_cast<double>(4 * config.d_model + 8 * config.heads_width());
  const double numbers = length * per_token + 6.0 * static_cast<double>(config.H) * length * length;
  return numbers * static_cast<double>(element_size);
}

/// Cuts that any sample holds: both ends, odd places, and both sides of every power of two, where blocked code has its
/// borders; then evenly spread ones up to `count`.
std::vector<std::int64_t> sampled_cuts(std::int64_t T, std::int64_t count) {
  std::set<std::int64_t> cuts;
  const auto add = [&](std::int64_t cut) {
    if (1 <= cut && cut < T) cuts.insert(cut);
  };
  for (const std::int64_t cut : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, T - 1, T / 2, T / 3 | 1, T / 5 | 1})
    add(cut);
  for (std::int64_t power = 2; power <= T; power *= 2) {
    for (const std::int64_t cut : {power - 1, power, power + 1}) add(cut);
  }
  const std::int64_t needed = static_cast<std::int64_t>(cuts.size());
  for (std::int64_t n = 0; n < count - needed; ++n) add(1 + (n * (T - 1)) / std::max<std::int64_t>(1, count - needed));
  return {cuts.begin(), cuts.end()};
}

struct Plan {
  std::vector<Trial> trials;  ///< by cut
  std::string description;    ///< "all 49 cuts, 3 changes each"
};

Plan make_plan(const CheckContext& context) {
  const std::int64_t T = context.T();
  const double affordable = kMaxMultiplyAdds / trial_cost(context.config(), T);
  const double every_cut = static_cast<double>(T - 1);
  const bool all_changes = every_cut * kChanges.size() <= affordable;
  const bool all_cuts = every_cut <= affordable;
  const std::vector<std::int64_t> cuts = sampled_cuts(T, all_cuts ? 2 * T : static_cast<std::int64_t>(affordable));

  Plan plan;
  std::size_t number = 0;
  for (std::int64_t cut = 1; cut < T; ++cut) {
    if (!all_cuts && !std::binary_search(cuts.begin(), cuts.end(), cut)) continue;
    for (std::size_t change = 0; change < (all_changes ? kChanges.size() : 1); ++change, ++number) {
      plan.trials.push_back({static_cast<std::int64_t>(number) % context.B(), cut,
                             kChanges[all_changes ? change : number % kChanges.size()]});
    }
  }
  const std::int64_t tried = all_cuts ? T - 1 : static_cast<std::int64_t>(cuts.size());
  plan.description =
      (all_cuts ? "all " + std::to_string(tried) : std::to_string(tried) + " of " + std::to_string(T - 1)) + " cuts, " +
      (all_changes ? "3 changes each" : "one of 3 changes each");
  return plan;
}

/// What a batch of trials did: outputs, and which of them moved.
struct Moved {
  at::Tensor base, changed;  ///< (n, T, d_model)
  at::Tensor bits;           ///< bool: not the same bits. What must not move is judged by this.
  at::Tensor values;         ///< bool: not the same number. What must move is judged by this: 0 and -0 are one number.
  at::Tensor before_cut;     ///< (n, T, 1) bool
};

/// Runs trials against unchanged runs of the same batched shape, slot by slot: in another slot or another shape the
/// same item may have other last bits.
class FutureChanger {
 public:
  FutureChanger(CheckContext& context, Subject& subject)
      : subject_(subject), x_(context.x()), noise_(context.draw(x_.sizes().vec(), Draw::kFuture)) {
    const double level = x_.to(at::kDouble).square().mean().sqrt().item<double>();
    noise_ = noise_ * (level > 0.0 ? level : 1.0);
  }

  /// Fills the batch up to `slots`, so that all runs have one shape, and returns the part that was asked for.
  Moved run(std::vector<Trial> trials, std::size_t slots) {
    const at::NoGradGuard no_gradients;
    const auto asked = static_cast<std::int64_t>(trials.size());
    while (trials.size() < slots) {
      const std::int64_t next_item = (trials.back().item + 1) % x_.size(0);
      trials.push_back({next_item, trials.front().cut, trials.front().change});
    }
    const at::TensorOptions whole = at::TensorOptions().dtype(at::kLong);
    at::Tensor items = at::empty({static_cast<std::int64_t>(trials.size())}, whole), cuts = at::empty_like(items);
    for (std::size_t slot = 0; slot < trials.size(); ++slot) {
      items[static_cast<std::int64_t>(slot)] = trials[slot].item;
      cuts[static_cast<std::int64_t>(slot)] = trials[slot].cut;
    }
    const at::Tensor x = x_.index_select(0, items.to(x_.device()));  // (n, T, d_model)
    const at::Tensor before_cut = at::arange(x.size(1), whole).view({1, -1, 1}).lt(cuts.view({-1, 1, 1}));
    const at::Tensor future = replaced(x, noise_.index_select(0, items.to(x_.device())), trials);

    const at::Tensor changed = subject_.forward(at::where(before_cut.to(x.device()), x, future)).to(at::kCPU);
    Moved moved;
    moved.before_cut = before_cut.narrow(0, 0, asked);
    moved.base = unchanged(items, x).narrow(0, 0, asked);
    moved.changed = changed.contiguous().narrow(0, 0, asked);
    moved.bits = bits_of(moved.base).ne(bits_of(moved.changed));
    moved.values = moved.base.ne(moved.changed);
    return moved;
  }

 private:
  static at::Tensor replaced(const at::Tensor& x, const at::Tensor& noise, const std::vector<Trial>& trials) {
    at::Tensor future = noise.clone();
    for (std::size_t slot = 0; slot < trials.size(); ++slot) {
      const auto n = static_cast<std::int64_t>(slot);
      if (trials[slot].change == Change::kRedrawn) continue;
      const double factor = trials[slot].change == Change::kScaled ? 3.0 : -1.0;
      // A token of zeros would stay what it is: it is redrawn.
      future[n].copy_(at::where(x[n].ne(0), x[n] * factor, noise[n]));
    }
    return future;
  }

  /// Most batches hold the same items in the same slots: then the unchanged run is made once.
  const at::Tensor& unchanged(const at::Tensor& items, const at::Tensor& x) {
    if (!items_.defined() || !items_.equal(items)) {
      items_ = items;
      base_ = subject_.forward(x).to(at::kCPU).contiguous();
    }
    return base_;
  }

  Subject& subject_;
  at::Tensor x_, noise_;
  at::Tensor items_, base_;
};

/// Slots of one batched run: as many as memory allows, in whole rounds of the batch items, so that every run holds the
/// same items in the same slots.
std::size_t slots_of_a_run(const CheckContext& context, std::size_t trials) {
  const double bytes = trial_bytes(context.config(), context.T(), context.x().element_size());
  const auto fitting = static_cast<std::int64_t>(std::min(kMaxBatchBytes / bytes, 1e9));
  const std::int64_t slots = std::clamp<std::int64_t>(fitting, 1, static_cast<std::int64_t>(trials));
  const std::int64_t B = context.B();
  return static_cast<std::size_t>(slots > B ? slots / B * B : slots);
}

/// Runs all trials, a batch at a time.
void run_trials(CheckContext& context, Subject& subject, const std::vector<Trial>& trials,
                const std::function<void(const Moved&, const std::vector<Trial>&)>& take) {
  FutureChanger changer(context, subject);
  const std::size_t slots = slots_of_a_run(context, trials.size());
  for (std::size_t first = 0; first < trials.size(); first += slots) {
    const std::size_t last = std::min(first + slots, trials.size());
    const std::vector<Trial> batch(trials.begin() + static_cast<std::ptrdiff_t>(first),
                                   trials.begin() + static_cast<std::ptrdiff_t>(last));
    take(changer.run(batch, slots), batch);
  }
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

/// mask-control: one element a trial, wrong when no earlier output moved or one is not finite.
void count_unmoved(Comparison& comparison, const Moved& moved, const std::vector<Trial>& trials) {
  for (std::size_t slot = 0; slot < trials.size(); ++slot) {
    const auto n = static_cast<std::int64_t>(slot);
    const std::int64_t cut = trials[slot].cut;
    const auto earlier = [&](const at::Tensor& tensor) { return tensor[n].narrow(0, 0, cut); };  // (cut, d_model)
    const bool finite =
        at::isfinite(earlier(moved.base)).all().item<bool>() && at::isfinite(earlier(moved.changed)).all().item<bool>();
    ++comparison.compared;
    if (finite && earlier(moved.values).any().item<bool>()) continue;
    ++comparison.wrong;
    comparison.measured += 1.0;
    if (!finite) ++comparison.non_finite;
    comparison.where_worst = "(batch " + std::to_string(trials[slot].item) + ", cut " + std::to_string(cut) + ")";
    if (comparison.where_first.empty()) comparison.where_first = comparison.where_worst;
  }
}

std::string describe(const Trial& trial) {
  return "when tokens " + std::to_string(trial.cut) + " and later " + to_words(trial.change);
}

}  // namespace

CheckResult check_causality(CheckContext& context) {
  if (!context.config().causal) return not_applicable("the layer is not causal");
  if (context.T() == 1) return not_applicable("T is 1: there is no future");
  const Plan plan = make_plan(context);
  Leaks leaks;
  leaks.comparison.limit = {0.0, "same shape, same slot: not one bit may differ"};
  run_trials(context, context.subject(), plan.trials,
             [&](const Moved& moved, const std::vector<Trial>& batch) { take_batch(leaks, moved, batch); });
  Findings findings("largest change of an earlier output");
  findings.add("", leaks.comparison);
  if (leaks.comparison.wrong > 0 && leaks.comparison.non_finite == 0) {
    findings.fail("not causal: output " + leaks.comparison.where_worst + " moves by " +
                  format_number(leaks.comparison.measured) + " " + describe(leaks.worst) + ", the first one is " +
                  leaks.comparison.where_first + " " + describe(leaks.first));
  }
  if (!leaks.something_moved) findings.fail("changing tokens moves no output at all, so nothing was tested");
  findings.note(plan.description);
  return findings.result();
}

CheckResult check_mask_control(CheckContext& context) {
  if (!context.config().causal) return not_applicable("the layer is not causal");
  if (context.T() == 1) return not_applicable("T is 1: there is no future");
  const std::unique_ptr<Subject> open = context.subject().with_mask(false);
  if (open == nullptr) return not_applicable("the layer's mask cannot be switched off");
  open->train(false);
  const std::int64_t last = context.T() - 1;
  std::vector<Trial> trials;
  for (const std::int64_t cut : std::set<std::int64_t>{1, std::min<std::int64_t>(2, last), (last + 1) / 2, last}) {
    const auto number = static_cast<std::int64_t>(trials.size());
    trials.push_back({number % context.B(), cut, kChanges[static_cast<std::size_t>(number) % kChanges.size()]});
  }
  Comparison comparison;
  comparison.limit = {0.0, "without a mask every token sees every other"};
  run_trials(context, *open, trials,
             [&](const Moved& moved, const std::vector<Trial>& batch) { count_unmoved(comparison, moved, batch); });
  Findings findings("cuts where nothing moved");
  findings.add("", comparison);
  if (comparison.wrong > 0) {
    findings.fail(
        "with the mask off, changing later tokens must move earlier outputs, and does not: what keeps the layer "
        "causal is not its mask");
  }
  return findings.result();
}

}  // namespace attn
