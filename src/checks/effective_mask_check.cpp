// effective-mask: which key moves which query, measured, against the declared mask, both ways.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "checks/check_context.h"
#include "checks/even_input.h"
#include "checks/reference/number_format.h"
#include "checks/reference/plain_attention.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

// Multiply-adds of each way to measure; some seconds. Above it a sample of the keys is tried. Reading out takes few
// runs and sees most, so it may take longer.
constexpr double kBudget = 2e10, kReadingBudget = 6e10;

/// What one key did.
struct KeyMoved {
  at::Tensor moved;   ///< bool: (B, H, T) of the core, (B, T) of the whole layer: it takes part in this query's result.
  at::Tensor change;  ///< float64, the same shape: how much of it is there at most.
};

KeyMoved difference(const at::Tensor& base, const at::Tensor& changed) {
  return {other_bits(base, changed).any(-1).to(at::kCPU),
          (changed.to(at::kDouble) - base.to(at::kDouble)).abs().amax(-1).to(at::kCPU)};
}

/// What both ways of measuring have in common: counts, places, and the map of all heads and items together.
class MaskJudge {
 public:
  explicit MaskJudge(CheckContext& context)
      : T_(context.T()),
        T_k_(context.T_k()),
        declared_(context.visible().to(at::kCPU)),
        leaks_(at::zeros({T_, T_k_}, at::kBool)),
        missing_(at::zeros({T_, T_k_}, at::kBool)),
        judged_(at::zeros({T_, T_k_}, at::kBool)) {
    leak_.limit = {0.0, "a hidden key may not move one bit"};
    absent_.limit = {0.0, "every visible key moves its query"};
  }

  /// Judges one key. `axes` are those of the result's tensors, the last one is the query. `own_query`: that of the same
  /// token, which is not judged; -1: all are. `noticed`: bool, broadcastable to the result, where a visible key must
  /// take part; undefined: that is not judged.
  void take(const KeyMoved& result, std::int64_t key, std::int64_t own_query, const at::Tensor& noticed,
            const AxisNames& axes) {
    const at::Tensor visible = visible_to_queries(result, key);
    at::Tensor tried = at::ones_like(visible);
    if (own_query >= 0) tried.select(-1, own_query).fill_(false);
    const at::Tensor hidden = visible.logical_not().logical_and(tried);
    at::Tensor due = at::zeros_like(visible);
    if (noticed.defined()) due = visible.logical_and(tried).logical_and(noticed);
    const at::Tensor leak = result.moved.logical_and(hidden), absent = result.moved.logical_not().logical_and(due);
    non_finite_ += at::isfinite(result.change).logical_not().sum().item<std::int64_t>();
    leak_.compared += hidden.sum().item<std::int64_t>();
    absent_.compared += due.sum().item<std::int64_t>();
    note_wrong(leak_, leak, at::where(leak, result.change, -1.0), key, axes);
    note_wrong(absent_, absent, at::where(absent, 1.0, -1.0), key, axes);
    const auto over_heads = [&](const at::Tensor& wrong) { return wrong.reshape({-1, T_}).any(0); };
    leaks_.select(1, key).logical_or_(over_heads(leak));
    missing_.select(1, key).logical_or_(over_heads(absent));
    judged_.select(1, key).logical_or_(over_heads(hidden.logical_or(due)));
  }

  /// True where a visible key must take part but nothing moved: worth a larger change before it is judged.
  bool still_unmoved(const KeyMoved& result, std::int64_t key, std::int64_t own_query,
                     const at::Tensor& noticed) const {
    at::Tensor due = visible_to_queries(result, key).logical_and(noticed);
    if (own_query >= 0) due.select(-1, own_query).fill_(false);
    return due.logical_and(result.moved.logical_not()).any().item<bool>();
  }

  CheckResult result(Findings& findings) const {
    Comparison leak = leak_;
    if (non_finite_ > 0) {  // says nothing about hidden or visible, so nothing is right about it
      leak.wrong += non_finite_;
      leak.compared += non_finite_;
      leak.non_finite = non_finite_;
      leak.measured = std::numeric_limits<double>::quiet_NaN();
    }
    findings.add("", leak);
    findings.add_support("", absent_);
    if (leak_.wrong > 0) {
      findings.fail(std::to_string(leak_.wrong) + " pairs leak: " + leak_.where_worst + " takes part with " +
                    format_number(leak_.measured) + ", though the mask hides the key");
    }
    if (absent_.wrong > 0) {
      findings.fail(std::to_string(absent_.wrong) + " visible keys take no part, the first is " + absent_.where_first);
    }
    CheckResult result = findings.result();
    result.map = map();
    return result;
  }

 private:
  /// Of the shape of the result: (B, H, T) or (B, T).
  at::Tensor visible_to_queries(const KeyMoved& result, std::int64_t key) const {
    at::Tensor visible = declared_.select(-1, key);  // (B or 1, 1, T)
    if (result.moved.dim() == 2) visible = visible.squeeze(1);
    return visible.expand(result.moved.sizes()).clone();
  }

  static void note_wrong(Comparison& comparison, const at::Tensor& wrong, const at::Tensor& errors, std::int64_t key,
                         const AxisNames& axes) {
    const std::int64_t count = wrong.sum().item<std::int64_t>();
    if (count == 0) return;
    const auto place = [&](const at::Tensor& largest) {
      std::string text = place_of(largest.argmax().item<std::int64_t>(), wrong.sizes(), axes);
      text.back() = ',';
      return text + " key " + std::to_string(key) + ")";
    };
    if (comparison.wrong == 0) comparison.where_first = place(wrong.to(at::kByte));
    const double largest = errors.max().item<double>();
    if (comparison.wrong == 0 || !(largest <= comparison.measured)) {
      comparison.measured = largest;
      comparison.where_worst = place(errors);
    }
    comparison.wrong += count;
  }

  DependencyMap map() const {
    DependencyMap map{T_, T_k_, {}};
    map.pairs.reserve(static_cast<std::size_t>(T_ * T_k_));
    const at::Tensor state =
        at::where(leaks_, static_cast<std::int64_t>(PairState::kLeak),
                  at::where(missing_, static_cast<std::int64_t>(PairState::kHiddenWrong),
                            at::where(judged_.logical_not(), static_cast<std::int64_t>(PairState::kUnjudged),
                                      at::where(declared_.any(0).any(0), static_cast<std::int64_t>(PairState::kVisible),
                                                static_cast<std::int64_t>(PairState::kHidden)))));
    const at::Tensor numbers = state.to(at::kLong).contiguous();
    const std::int64_t* first = numbers.const_data_ptr<std::int64_t>();
    for (std::int64_t n = 0; n < numbers.numel(); ++n) map.pairs.push_back(static_cast<PairState>(first[n]));
    return map;
  }

  std::int64_t T_, T_k_;
  at::Tensor declared_;                  ///< (B or 1, 1, T, T_k) bool
  at::Tensor leaks_, missing_, judged_;  ///< (T, T_k) bool
  Comparison leak_, absent_;
  std::int64_t non_finite_ = 0;
};

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

/// With unit vectors as values, as many keys at a time as a head is wide, the context is the matrix of weights that the
/// core really uses, for every head and item: no rounding of other values hides a small one. Right for every core that
/// is linear in v. False when q, k and v cannot be fed in.
bool read_weights(CheckContext& context, MaskJudge& judge, Findings& findings) {
  const std::int64_t d_k = context.config().d_k();
  Core core(context);
  const double runs = context.budget(kReadingBudget) / core_cost(context.config(), context.B(), context.longest());
  const std::vector<std::int64_t> keys = telling_places(0, context.T_k() - 1, runs * static_cast<double>(d_k));
  const at::Tensor noticed = core.weights_due().gt(8.0 * underflow_of(context.x().scalar_type()));
  for (std::size_t first = 0; first < keys.size(); first += static_cast<std::size_t>(d_k)) {
    const std::size_t count = std::min(static_cast<std::size_t>(d_k), keys.size() - first);
    const at::Tensor v = at::zeros(context.keys_shape(), context.x().options());
    for (std::size_t n = 0; n < count; ++n)
      v.select(2, keys[first + n]).select(-1, static_cast<std::int64_t>(n)).fill_(1);
    const std::optional<at::Tensor> mixed = core.mix(core.k(), v);
    if (!mixed.has_value()) return false;
    const at::Tensor weights = mixed->to(at::kCPU, at::kDouble);
    for (std::size_t n = 0; n < count; ++n) {
      const at::Tensor weight = weights.select(-1, static_cast<std::int64_t>(n));  // (B, H, T)
      const std::int64_t key = keys[first + n];
      judge.take({weight.ne(0), weight.abs()}, key, /*own_query=*/-1, noticed.select(-1, key), kRowAxes);
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
