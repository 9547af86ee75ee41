// Faults of single numbers and of the kind of result.
#include <ATen/ATen.h>

#include <cmath>
#include <stdexcept>

#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "checks/reference/number_format.h"

namespace attn {
namespace {

/// The first token's context is off by one rounding.
struct FirstTokenOff : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor factor = at::ones({weights.size(-2), 1}, v.options());
    factor[0][0] = 1.0 + 2 * epsilon_of(v.scalar_type());
    return AttentionCore::mix_values(weights, v) * factor;
  }
};

/// Context slightly too large from the second token on; the gradient does not know of it.
struct ContextOff : AttentionCore {
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    const at::Tensor context = AttentionCore::mix_values(weights, v);
    const at::Tensor off = context.detach() * 1e-4;
    off.select(-2, 0).zero_();
    return context + off;
  }
};

template <typename Layer>
struct NanHidden : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override {
    return Layer::project_output(at::nan_to_num(merged, 0.0, 0.0, 0.0));
  }
};

/// The output ignores its input (0 or -0).
template <typename Layer>
struct OutputAllZero : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override { return Layer::project_output(merged) * 0; }
};

/// (B*T, d_model)
template <typename Layer>
struct OutputFlat : Layer {
  using Layer::Layer;
  at::Tensor project_output(const at::Tensor& merged) override { return Layer::project_output(merged).flatten(0, 1); }
};

struct Throws : AttentionCore {
  at::Tensor compute_scores(const at::Tensor&, const at::Tensor&) const override {
    throw std::runtime_error("no scores today");
  }
};

/// Its weight is exactly 1 then.
std::string needs_lone_first_token(const RunConfig& run) {
  if (run.attention.sink) return "there is a sink beside the first token";
  const bool some = some_visible_pair(run, [](std::int64_t query, std::int64_t) { return query == 0; });
  return some ? "" : "the first token sees no key";
}

std::string needs_later_query(const RunConfig& run) {
  const bool some = some_visible_pair(run, [](std::int64_t query, std::int64_t) { return query > 0; });
  return some ? "" : "no token but the first sees a key";
}

}  // namespace

std::vector<FaultEntry> number_faults() {
  return {
      {{"first-token-rounded", "the first token's context is off by one rounding", {"first-token"}},
       {needs_a_future, needs_lone_first_token},
       core_fault<FirstTokenOff>()},
      {{"context-off", "context is a ten-thousandth too large from the second token on", {"sdpa-forward"}},
       {needs_two_tokens, needs_later_query},
       core_fault<ContextOff>()},
      {{"nan-turned-into-0", "NaN and infinity become 0 before the output projection", {"nan-propagation"}},
       {needs_visible_key},
       layer_fault<NanHidden>()},
      {{"output-all-zero", "the output is 0 whatever comes in", {"finite", "reference-forward"}},
       {needs_visible_key},
       layer_fault<OutputAllZero>()},
      {{"output-flat", "the output has no batch axis", {"shapes"}}, {}, layer_fault<OutputFlat>()},
      {{"throws", "the layer throws", {"shapes", "finite"}}, {}, core_fault<Throws>()},
  };
}

}  // namespace attn
