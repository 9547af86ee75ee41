// Faults of the mask, and of what it hides.
#include <ATen/ATen.h>

#include <limits>

#include "checks/faults/fault.h"

namespace attn {
namespace {

constexpr std::int64_t kLongestRight = 8;

/// Base of the faults that apply another mask than they are told, softmax included.
struct OtherMask : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    return AttentionCore::mask_scores(scaled, applied(mask));
  }
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override {
    return AttentionCore::normalize_scores(masked, applied(mask), sink);
  }
  std::optional<at::Tensor> applied(const std::optional<at::Tensor>& mask) const {
    return mask.has_value() ? std::optional(changed(*mask)) : std::nullopt;
  }

  virtual at::Tensor changed(const at::Tensor& mask) const = 0;
};

struct NoMask : OtherMask {
  at::Tensor changed(const at::Tensor& mask) const override { return at::ones_like(mask); }
};

struct LeaksOneKey : OtherMask {
  at::Tensor changed(const at::Tensor& mask) const override { return mask.logical_or(at::ones_like(mask).tril(1)); }
};

struct HidesOneself : OtherMask {
  at::Tensor changed(const at::Tensor& mask) const override { return mask.logical_and(at::ones_like(mask).tril(-1)); }
};

struct UpperForLower : OtherMask {
  at::Tensor changed(const at::Tensor& mask) const override { return mask.transpose(-2, -1); }
};

/// The lower right block of the mask is open.
struct BlockForgotten : OtherMask {
  at::Tensor changed(const at::Tensor& mask) const override {
    const at::Tensor opened = mask.clone();
    opened.slice(-2, mask.size(-2) / 2).slice(-1, mask.size(-1) / 2).fill_(true);
    return opened;
  }
};

/// Keys from the ninth on are never hidden.
struct RightForShortOnes : OtherMask {
  at::Tensor changed(const at::Tensor& mask) const override {
    const at::Tensor opened = mask.clone();
    if (mask.size(-1) > kLongestRight) opened.slice(-1, kLongestRight).fill_(true);
    return opened;
  }
};

struct FiniteFill : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    return mask.has_value() ? scaled.masked_fill(mask->logical_not(), -50.0) : scaled * 1;
  }
};

/// The last query does not see the key in the middle.
struct HidesAVisibleKey : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    const at::Tensor masked = AttentionCore::mask_scores(scaled, mask);
    const at::Tensor hidden = at::zeros({scaled.size(-2), scaled.size(-1)}, scaled.options().dtype(at::kBool));
    if (scaled.size(-1) > 1) hidden[scaled.size(-2) - 1][(scaled.size(-1) - 1) / 2] = true;
    return masked.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
};

/// Causal whatever it is told: switching the mask off does nothing.
struct AlwaysMasked : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>&) const override {
    const at::Tensor own = at::ones({scaled.size(-2), scaled.size(-1)}, scaled.options().dtype(at::kBool)).tril();
    return AttentionCore::mask_scores(scaled, own);
  }
};

std::string needs_causal(const RunConfig& run) { return run.attention.causal ? "" : "the layer is not causal"; }

std::string needs_three_tokens(const RunConfig& run) {
  return run.T < 3 ? "T is " + std::to_string(run.T) + ": the lower right block of the mask hides nothing" : "";
}

std::string needs_more_than_8_tokens(const RunConfig& run) {
  return run.T <= kLongestRight ? "T is " + std::to_string(run.T) + ": the mask is right up to 8" : "";
}

/// exp(-50) is 2e-22; the smallest number of float16 is 6e-8.
std::string needs_small_numbers(const RunConfig& run) {
  return run.dtype == Dtype::kFloat16 ? "exp(-50) is exactly 0 in float16" : "";
}

}  // namespace

std::vector<FaultEntry> mask_faults() {
  const std::vector<std::string> leak{"masked-weights", "causality", "effective-mask"};
  return {
      {{"mask-none", "nothing is hidden", leak}, {needs_a_future}, core_fault<NoMask>()},
      {{"mask-leaks-one-key", "the diagonal is shifted: each query sees the next key", leak},
       {needs_a_future},
       core_fault<LeaksOneKey>()},
      {{"mask-hides-oneself",
        "the diagonal is shifted: no query sees its own key",
        {"masked-weights", "first-token", "effective-mask"}},
       {needs_causal},
       core_fault<HidesOneself>()},
      {{"mask-upper-lower-swapped", "each query sees itself and what comes after", leak},
       {needs_a_future},
       core_fault<UpperForLower>()},
      {{"mask-block-forgotten", "the lower right block of the mask is missing", leak},
       {needs_a_future, needs_three_tokens},
       core_fault<BlockForgotten>()},
      {{"mask-right-up-to-8", "keys from the ninth on are never hidden", leak},
       {needs_a_future, needs_more_than_8_tokens},
       core_fault<RightForShortOnes>()},
      {{"mask-fill-minus-50", "hidden scores are -50 instead of -inf", {"masked-weights"}},
       {needs_a_future, needs_small_numbers},
       core_fault<FiniteFill>()},
      {{"mask-hides-visible-key",
        "the last query does not see the key in the middle",
        {"masked-weights", "effective-mask", "sdpa-forward"}},
       {needs_two_keys},
       core_fault<HidesAVisibleKey>()},
      {{"mask-always-on", "the mask stays on when it is switched off", {"mask-control"}},
       {needs_two_keys},
       core_fault<AlwaysMasked>()},
  };
}

}  // namespace attn
