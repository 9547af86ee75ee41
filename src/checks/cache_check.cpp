// kv-cache: the same tokens in pieces, with keys and values kept between the calls, give what one run gives.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "checks/check_context.h"
#include "checks/exact_run.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

/// In how many tokens a call the sequence is given.
struct Plan {
  std::string name;
  std::vector<std::int64_t> lengths;
};

/// `first` at first, then `each` at a time up to `T` in all.
std::vector<std::int64_t> pieces_of(std::int64_t first, std::int64_t each, std::int64_t T) {
  std::vector<std::int64_t> lengths;
  std::int64_t done = 0;
  while (done < T) {
    const std::int64_t length = std::min(lengths.empty() ? first : each, T - done);
    lengths.push_back(length);
    done += length;
  }
  return lengths;
}

/// The first tokens and the last ones singly, those between at once.
std::vector<std::int64_t> single_at_both_ends(std::int64_t at_start, std::int64_t at_end, std::int64_t T) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(at_start), 1);
  lengths.push_back(T - at_start - at_end);
  lengths.insert(lengths.end(), static_cast<std::size_t>(at_end), 1);
  return lengths;
}

std::vector<Plan> make_plans(CheckContext& context) {
  constexpr std::int64_t kShort = 64, kAtStart = 8, kAtEnd = 24;
  const std::int64_t T = context.T(), half = (T + 1) / 2;
  std::vector<Plan> plans;
  if (T <= kShort) {
    plans.push_back({"one token at a time", pieces_of(1, 1, T)});
  } else {
    plans.push_back({"the first and last tokens one at a time", single_at_both_ends(kAtStart, kAtEnd, T)});
  }
  const std::int64_t several = T <= kShort ? 3 : T / 8 + 1;
  plans.push_back({std::to_string(several) + " tokens at a time", pieces_of(several, several, T)});
  const std::int64_t chunk = T <= kShort ? 2 : T / 5 + 1;
  plans.push_back({"a prefill of " + std::to_string(half) + ", then " + std::to_string(chunk) + " at a time",
                   pieces_of(half, chunk, T)});
  if (const std::optional<CacheConfig>& own = context.run().cache) {
    if (own->prefill + own->steps * own->chunk == T) {
      plans.push_back({"the config's own cache", pieces_of(own->prefill, own->chunk, T)});
    }
  }
  std::erase_if(plans, [](const Plan& plan) { return plan.lengths.size() == 1; });
  return plans;
}

at::Tensor joined(const std::vector<DecodedPiece>& pieces) {
  std::vector<at::Tensor> outputs;
  for (const DecodedPiece& piece : pieces) outputs.push_back(piece.output);
  return at::cat(outputs, 1);
}

void judge_outputs(Findings& findings, const Plan& plan, const std::vector<DecodedPiece>& pieces,
                   const at::Tensor& whole, const ErrorBudget& limit) {
  const Comparison comparison = compare(joined(pieces), whole, limit, kTokenAxes);
  findings.add(plan.name, comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("with a cache, " + plan.name + ", output " + comparison.where_first +
                  " is not that of one run, by up to " + format_number(comparison.measured));
  }
}

/// In float64 a bug stays, where a coarse format would take it for rounding.
void judge_in_float64(CheckContext& context, Findings& findings, const Plan& plan) {
  const std::optional<ErrorBudget> limit = exact_limit(context);
  const std::optional<ExactRun> exact = exact_run(context);
  if (!limit.has_value() || !exact.has_value()) return;
  const auto pieces = exact->subject->forward_in_pieces(exact->input, plan.lengths);
  if (!pieces.has_value()) return;
  const Comparison comparison = compare(joined(*pieces), exact->subject->forward(exact->input), *limit, kTokenAxes);
  findings.add_support("float64", comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail("with a cache, in float64, output " + comparison.where_first + " is not that of one run, by up to " +
                  format_number(comparison.measured) + ": a bug, not rounding");
  }
}

/// What the cache holds after each call: with a window no more than a later query can see.
void judge_size(CheckContext& context, Findings& findings, const Plan& plan, const std::vector<DecodedPiece>& pieces) {
  const AttentionConfig& config = context.config();
  std::int64_t seen = 0;
  for (std::size_t call = 0; call < pieces.size(); ++call) {
    seen += plan.lengths[call];
    const DecodedPiece& piece = pieces[call];
    const std::int64_t most = config.window.has_value() ? std::min(seen, *config.window - 1) : seen;
    const std::int64_t bytes = 2 * context.B() * config.H_kv() * piece.keys * config.d_k() * context.x().element_size();
    const std::string where = "after call " + std::to_string(call) + " (" + plan.name + ") the cache holds ";
    if (piece.keys > most) {
      findings.fail(where + std::to_string(piece.keys) + " keys, of which a later query can see " +
                    std::to_string(most));
      return;
    }
    if (piece.bytes != bytes) {
      findings.fail(where + std::to_string(piece.bytes) + " bytes, expected 2 * B * H_kv * keys * d_k * " +
                    std::to_string(context.x().element_size()) + " = " + std::to_string(bytes));
      return;
    }
  }
}

}  // namespace

CheckResult check_kv_cache(CheckContext& context) {
  const AttentionConfig& config = context.config();
  const std::vector<Plan> plans = make_plans(context);
  const at::NoGradGuard no_gradients;
  const auto first_pieces = context.subject().forward_in_pieces(context.input(), plans.front().lengths);
  if (!first_pieces.has_value()) return not_applicable("the layer keeps no keys and values between calls");
  const at::Tensor whole = context.subject().forward(context.input());
  const ErrorBudget own = context.output_budget();
  const ErrorBudget limit{2.0 * own.max_abs, "twice the output's rounding: " + own.why};
  Findings findings("largest difference from one run");
  std::size_t calls = 0;
  for (const Plan& plan : plans) {
    const bool is_first = &plan == &plans.front();  // it has run already
    const auto pieces =
        is_first ? *first_pieces : context.subject().forward_in_pieces(context.input(), plan.lengths).value();
    judge_outputs(findings, plan, pieces, whole, limit);
    judge_size(context, findings, plan, pieces);
    calls += pieces.size();
  }
  judge_in_float64(context, findings, plans.front());
  const at::Tensor again = joined(context.subject().forward_in_pieces(context.input(), plans.front().lengths).value());
  const Comparison repeated = compare_bits(again, joined(*first_pieces), "an emptied cache is a new one", kTokenAxes);
  findings.add_support("a second run", repeated);
  if (repeated.wrong > 0 && repeated.non_finite == 0) {
    findings.fail("the same run once more, with the cache emptied, gives another output at " + repeated.where_first +
                  ": something of the first is left");
  }
  const std::int64_t bytes_a_token = 2 * config.H_kv() * config.d_k() * context.x().element_size();
  findings.note(std::to_string(plans.size()) + " ways to cut " + std::to_string(context.T()) + " tokens, " +
                std::to_string(calls) + " calls; " + std::to_string(bytes_a_token) + " bytes a token" +
                (config.window.has_value() ? ", of at most " + std::to_string(*config.window - 1) : ""));
  return findings.result();
}

}  // namespace attn
