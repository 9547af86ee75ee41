#include "checks/future_changes.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "checks/sampling.h"

namespace attn {
namespace {

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

/// Runs batches of trials of one size, in which each trial's item follows the one before it.
class FutureChanger {
 public:
  FutureChanger(CheckContext& context, Subject& subject, const AttentionInput& input)
      : subject_(subject),
        input_(input),
        noise_(context.draw(input.x.sizes().vec(), Draw::kFuture).to(input.x.options())) {
    const double level = input.x.to(at::kDouble).square().mean().sqrt().item<double>();
    noise_ = noise_ * (level > 0.0 ? level : 1.0);
  }

  /// Fills the batch up to `slots`, so that all runs have one shape, and returns the part that was asked for.
  Moved run(std::vector<Trial> trials, std::size_t slots) {
    const at::NoGradGuard no_gradients;
    const auto asked = static_cast<std::int64_t>(trials.size());
    while (trials.size() < slots) {
      const std::int64_t next_item = (trials.back().item + 1) % input_.x.size(0);
      trials.push_back({trials.front().cut, trials.front().change, next_item});
    }
    const at::TensorOptions whole = at::TensorOptions().dtype(at::kLong);
    std::vector<std::int64_t> items, cuts;
    for (const Trial& trial : trials) {
      items.push_back(trial.item);
      cuts.push_back(trial.cut);
    }
    const AttentionInput chosen = chosen_items(input_, items);
    const at::Tensor& x = chosen.x;  // (n, T, d_model)
    const at::Tensor before_cut =
        at::arange(x.size(1), whole).view({1, -1, 1}).lt(at::tensor(cuts, at::kLong).view({-1, 1, 1}));
    const at::Tensor future = replaced(x, chosen_items({noise_}, items).x, trials);

    const at::Tensor changed =
        subject_.forward(with_x(chosen, at::where(before_cut.to(x.device()), x, future))).to(at::kCPU);
    Moved moved;
    moved.before_cut = before_cut.narrow(0, 0, asked);
    moved.base = unchanged(trials.front().item, chosen).narrow(0, 0, asked);
    moved.changed = changed.contiguous().narrow(0, 0, asked);
    moved.bits = other_bits(moved.base, moved.changed);
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

  /// Slots hold the items in turn, so that the first one says them all: few unchanged runs serve every batch.
  const at::Tensor& unchanged(std::int64_t first_item, const AttentionInput& chosen) {
    at::Tensor& base = unchanged_[first_item];
    if (!base.defined()) base = subject_.forward(chosen).to(at::kCPU).contiguous();
    return base;
  }

  Subject& subject_;
  AttentionInput input_;
  at::Tensor noise_;
  std::map<std::int64_t, at::Tensor> unchanged_;
};

/// Whole rounds of the batch items, so that every batch holds the same items in the same slots.
std::size_t slots_of_a_batch(const CheckContext& context, std::int64_t items, std::int64_t element_size,
                             std::size_t trials) {
  const double bytes = forward_bytes(context.config(), context.T(), element_size);
  const auto fitting = static_cast<std::size_t>(std::min(kSmallBatchBytes / bytes, 1e9));
  const auto B = static_cast<std::size_t>(items);
  return std::min(std::max(B, fitting / B * B), trials);
}

}  // namespace

std::string describe(const Trial& trial) {
  return "when tokens " + std::to_string(trial.cut) + " and later " + to_words(trial.change);
}

void run_trials(CheckContext& context, Subject& subject, const AttentionInput& input, const std::vector<Trial>& trials,
                const std::function<void(const Moved&, const std::vector<Trial>&)>& take) {
  FutureChanger changer(context, subject, input);
  const std::int64_t items = input.x.size(0);
  const std::size_t slots = slots_of_a_batch(context, items, input.x.element_size(), trials.size());
  for (std::size_t first = 0; first < trials.size(); first += slots) {
    const std::size_t last = std::min(first + slots, trials.size());
    std::vector<Trial> batch;
    for (std::size_t number = first; number < last; ++number) {
      batch.push_back({trials[number].cut, trials[number].change, static_cast<std::int64_t>(number) % items});
    }
    take(changer.run(batch, slots), batch);
  }
}

}  // namespace attn
