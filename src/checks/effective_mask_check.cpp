// effective-mask: which key moves which query, measured, against the declared mask, both ways.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "checks/check_context.h"
#include "checks/even_input.h"
#include "checks/mask_judge.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "checks/sampling.h"
#include "checks/unit_values.h"
#include "core/text.h"

namespace attn {
namespace {

// Multiply-adds of each way to measure; some seconds. Above it a sample of the keys is tried. Reading out takes few
// runs and sees most, so it may take longer.
constexpr double kBudget = 2e10, kReadingBudget = 6e10;

KeyMoved difference(const at::Tensor& base, const at::Tensor& changed) {
  return {other_bits(base, changed).any(-1).to(at::kCPU),
          (changed.to(at::kDouble) - base.to(at::kDouble)).abs().amax(-1).to(at::kCPU)};
}

std::vector<std::int64_t> affordable_keys(CheckContext& context, double cost_of_one) {
  return telling_places(0, context.T_k() - 1, context.budget(kBudget) / cost_of_one);
}

/// The subject's core, fed with q, k and v of even scores.
class Core {
 public:
  explicit Core(CheckContext& context)
      : context_(context),
        q_(context.draw(context.heads_shape(), Draw::kQuery) * even_size(context.config())),
        k_(context.draw(context.keys_shape(), Draw::kKey) * even_size(context.config())) {}

  const at::Tensor& k() const { return k_; }

  /// The weights that these q and k must give by the declared mask and the config's scores: (B, H, T, T_k) float64.
  at::Tensor weights_due() const {
    const AttentionConfig& config = context_.config();
    const at::Tensor scores = plain_scores(
        q_.to(at::kCPU, at::kDouble), for_query_heads(k_, config.H).to(at::kCPU, at::kDouble), score_rules(config));
    at::Tensor sinks;
    if (config.sink) sinks = context_.parameter("sinks");
    if (sinks.defined()) sinks = sinks.to(at::kCPU, at::kDouble);
    return visible_softmax(scores, context_.visible().to(at::kCPU), sinks);
  }

  /// (B, H, T, d_k); absent when q, k and v cannot be fed in.
  std::optional<at::Tensor> mix(const at::Tensor& k, const at::Tensor& v) {
    const auto steps = context_.subject().attend(q_, k, v, std::nullopt, context_.input().real_keys);
    if (!steps.has_value()) return std::nullopt;
    if (steps->output.sizes() != q_.sizes()) {
      throw SubjectFailure("context: expected shape " + format_shape(q_.sizes().vec()) + ", got " +
                           format_shape(steps->output.sizes().vec()));
    }
    return steps->output;
  }

 private:
  /// Of numbers whose scaled products stay about 1/16 or less, so that no weight underflows whatever the scale.
  static double even_size(const AttentionConfig& config) {
    const double usual_score = std::abs(config.scale()) * std::sqrt(static_cast<double>(config.d_k()));
    return std::min(1.0, 1.0 / std::sqrt(usual_score)) / 16.0;
  }

  CheckContext& context_;
  at::Tensor q_, k_;
};

/// Reads the weights that the core really uses out of its context, for every head and item; see unit_values(). False
/// when q, k and v cannot be fed in.
bool read_weights(CheckContext& context, MaskJudge& judge, Findings& findings) {
  const std::int64_t d_k = context.config().d_k();
  Core core(context);
  const double runs = context.budget(kReadingBudget) / core_cost(context.config(), context.B(), context.longest());
  const std::vector<std::int64_t> keys = telling_places(0, context.T_k() - 1, runs * static_cast<double>(d_k));
  const at::Tensor noticed = core.weights_due().gt(8.0 * underflow_of(context.x().scalar_type()));
  for (std::int64_t first = 0; first < std::ssize(keys); first += d_k) {
    const std::int64_t count = std::min<std::int64_t>(d_k, std::ssize(keys) - first);
    const std::vector<std::int64_t> some(keys.begin() + first, keys.begin() + first + count);
    const std::optional<at::Tensor> mixed = core.mix(core.k(), unit_values(core.k(), some));
    if (!mixed.has_value()) return false;
    const std::vector<at::Tensor> weights = mixed->to(at::kCPU, at::kDouble).unbind(-1);  // of (B, H, T)
    for (std::size_t n = 0; n < some.size(); ++n) {
      judge.take({weights[n].ne(0), weights[n].abs()}, some[n], /*own_query=*/-1, noticed.select(-1, some[n]),
                 kRowAxes);
    }
  }
  findings.tried(keys.size(), context.T_k(), "keys read out");
  return true;
}

/// Moves k_j and v_j for all heads and items at once: this also shows a hidden key that takes part in the normaliser
/// only, and a core that is not linear in v.
void move_keys(CheckContext& context, MaskJudge& judge, Findings& findings) {
  constexpr double kValueChange = 1e4;  // moves its query even in bfloat16, whatever the other values add up to
  Core core(context);
  const at::Tensor v = context.draw(context.keys_shape(), Draw::kValue);
  const at::Tensor base = core.mix(core.k(), v).value();
  const std::vector<std::int64_t> keys =
      affordable_keys(context, core_cost(context.config(), context.B(), context.longest()));
  // What the change adds must be more than the rounding of what the values add up to.
  const at::ScalarType type = v.scalar_type();
  const double smallest = 8.0 * epsilon_of(type) * v.abs().max().item<double>() / kValueChange;
  const at::Tensor noticed = core.weights_due().gt(std::max(smallest, 8.0 * underflow_of(type)));
  for (const std::int64_t key : keys) {
    at::Tensor changed_k = core.k().clone(), changed_v = v.clone();
    changed_k.select(2, key).neg_();
    changed_v.select(2, key).add_(kValueChange);
    KeyMoved result = difference(base, core.mix(changed_k, changed_v).value());
    result.change = result.change / kValueChange;  // for a unit of value, as the weights are
    judge.take(result, key, /*own_query=*/-1, noticed.select(-1, key), kRowAxes);
  }
  findings.tried(keys.size(), context.T_k(), "keys moved");
}

/// Redraws one token at a time, of the memory where there is one. In self-attention the diagonal says nothing: x_j also
/// moves q_j. That a visible key takes part is judged here only where the core could not show it: the output of a
/// coarse format can hide a small part.
void move_tokens(CheckContext& context, MaskJudge& judge, bool absence_counts, Findings& findings) {
  const AttentionInput input = even_input(context).input;
  const at::Tensor& source = key_source(input);
  const at::Tensor other = context.draw(source.sizes().vec(), Draw::kOtherInput);
  const at::Tensor base = context.subject().forward(input);
  const std::vector<std::int64_t> keys =
      affordable_keys(context, forward_cost(context.config(), context.B(), context.longest()));
  // (B, T, T_k): what is more than the rounding of the output in any head.
  const double noticeable = 64.0 * epsilon_of(source.scalar_type());
  at::Tensor noticed;
  if (absence_counts) noticed = even_weights(context).amax(1).gt(noticeable).expand({context.B(), -1, -1});
  for (const std::int64_t key : keys) {
    const std::int64_t own_query = context.has_memory() ? -1 : key;
    const at::Tensor noticed_here = absence_counts ? noticed.select(-1, key) : at::Tensor();
    KeyMoved together;
    // A larger change only where a smaller one was lost in rounding: the output's bias may be large.
    for (const double size : {1.0, 32.0, -32.0, 1024.0, -1024.0}) {
      at::Tensor changed = source.clone();
      changed.select(1, key).copy_(other.select(1, key) * size);
      const KeyMoved found = difference(base, context.subject().forward(with_key_source(input, changed)));
      together.moved = together.moved.defined() ? together.moved.logical_or(found.moved) : found.moved;
      together.change = together.change.defined() ? at::maximum(together.change, found.change) : found.change;
      if (!absence_counts || !judge.still_unmoved(together, key, own_query, noticed_here)) break;
    }
    judge.take(together, key, own_query, noticed_here, {"batch", "query"});
  }
  findings.tried(keys.size(), context.T_k(), "tokens moved");
}

/// With a memory a token of x is a query alone: its change moves its own output and no other.
void move_queries(CheckContext& context, Findings& findings) {
  const AttentionInput input = even_input(context).input;
  const at::Tensor other = context.draw(input.x.sizes().vec(), Draw::kOtherInput);
  const at::Tensor base = context.subject().forward(input);
  for (const std::int64_t query :
       affordable_keys(context, forward_cost(context.config(), context.B(), context.longest()))) {
    if (query >= context.T()) break;
    at::Tensor changed = input.x.clone();
    changed.select(1, query).copy_(other.select(1, query));
    const at::Tensor output = context.subject().forward(with_x(input, changed));
    at::Tensor expected = base.clone();
    expected.select(1, query).copy_(output.select(1, query));
    const Comparison comparison = compare_bits(output, expected, "a query moves its own output alone", kTokenAxes);
    findings.add_support("query " + std::to_string(query) + " moved", comparison);
    if (comparison.wrong > 0 && comparison.non_finite == 0) {
      findings.fail("query " + std::to_string(query) + " moves " + comparison.where_worst);
    }
  }
}

}  // namespace

CheckResult check_effective_mask(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  MaskJudge judge(context);
  Findings findings("largest wrong part of a key");
  const bool core = read_weights(context, judge, findings);
  if (!core && context.T_k() == 1) {
    return not_applicable(std::string(context.has_memory() ? "T_k" : "T") + " is 1, and the layer lets no k and v in");
  }
  if (core) move_keys(context, judge, findings);
  if (!core && !context.has_memory()) findings.note("q, k and v cannot be fed in, so the diagonal is not judged");
  if (context.T_k() > 1 || context.has_memory()) move_tokens(context, judge, /*absence_counts=*/!core, findings);
  if (context.has_memory()) move_queries(context, findings);
  return judge.result(findings);
}

}  // namespace attn
