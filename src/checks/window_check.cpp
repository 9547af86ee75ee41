// window: how many keys each query really sees, as a list, against what a window of W keys leaves.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <variant>
#include <vector>

#include "checks/check_context.h"
#include "checks/reference/may_look.h"
#include "checks/reference/plain_attention.h"
#include "checks/sampling.h"
#include "checks/unit_values.h"
#include "core/text.h"

namespace attn {
namespace {

/// A little longer than the window, where the layer and the time allow it: a window that hides nothing says little, and
/// one that hides almost everything says no more.
std::int64_t telling_length(CheckContext& context) {
  constexpr double kBudget = 1e10;  // multiply-adds of one reading; there are as many as T / d_k
  constexpr std::int64_t kEnough = 64;
  const AttentionConfig& config = context.config();
  const bool has_rows = config.mask.has_value() && std::holds_alternative<RowsMask>(*config.mask);
  const std::int64_t wanted = *config.window + 2;
  if (context.T() >= wanted) return std::min(context.T(), std::max(wanted, kEnough));
  if (has_rows || wanted > config.max_seq_len) return context.T();
  const std::int64_t length =
      affordable_length(config, context.T(), wanted, context.budget(kBudget), context.x().element_size());
  return length == wanted ? wanted : context.T();
}

/// Which key has a weight in which query, in any head: (T, T) bool on the CPU. Absent when q, k and v cannot be fed in.
std::optional<at::Tensor> weights_used(CheckContext& context, std::int64_t T) {
  const AttentionConfig& config = context.config();
  const at::TensorOptions options = context.x().options();
  const at::Tensor q = at::zeros({1, config.H, T, config.d_k()}, options);
  const at::Tensor k = at::zeros({1, config.H_kv(), T, config.d_k()}, options);
  at::Tensor used = at::zeros({T, T}, at::kBool);
  for (std::int64_t first = 0; first < T; first += config.d_k()) {
    std::vector<std::int64_t> keys(static_cast<std::size_t>(std::min(config.d_k(), T - first)));
    std::iota(keys.begin(), keys.end(), first);
    const auto steps = context.subject().attend(q, k, unit_values(k, keys));
    if (!steps.has_value()) return std::nullopt;
    const at::Tensor* found = captured_step(*steps, Step::kContext, q.sizes().vec());
    if (found == nullptr) return std::nullopt;
    const std::int64_t count = std::ssize(keys);
    used.narrow(1, first, count).copy_(found->narrow(-1, 0, count).ne(0).any(1).squeeze(0));
  }
  return used;
}

/// By the judge's own reading of the mask, with this window in place of the config's; absent: no window.
at::Tensor declared_keys(AttentionConfig config, std::optional<std::int64_t> window, std::int64_t T) {
  config.window = window;
  return declared_mask(config, T, T, {}, at::kCPU).squeeze(0).squeeze(0);
}

/// "1,2,3,3,3": visible keys of each query, up to where they stay the same.
std::string counts_in_words(const at::Tensor& keys) {
  constexpr std::int64_t kMost = 12;
  const at::Tensor counts = keys.sum(-1);
  std::vector<std::string> words;
  for (std::int64_t i = 0; i < std::min(kMost, counts.numel()); ++i) {
    words.push_back(std::to_string(counts[i].item<std::int64_t>()));
  }
  const std::string last = std::to_string(counts[counts.numel() - 1].item<std::int64_t>());
  return join(words, ",") + (counts.numel() > kMost ? ", ... " + last : "");
}

std::string window_diagnosis(const AttentionConfig& config, const at::Tensor& found, std::int64_t T) {
  const std::int64_t W = *config.window;
  if (found.equal(declared_keys(config, std::nullopt, T))) return ": the window is not applied";
  if (found.equal(declared_keys(config, W + 1, T))) return ": a window of W + 1, which does not count the token itself";
  if (W > 1 && found.equal(declared_keys(config, W - 1, T))) return ": a window of W - 1";
  return "";
}

}  // namespace

CheckResult check_window(CheckContext& context) {
  const AttentionConfig& config = context.config();
  const at::NoGradGuard no_gradients;
  const std::int64_t T = telling_length(context);
  const std::optional<at::Tensor> found = weights_used(context, T);
  if (!found.has_value()) return not_applicable("the layer lets no q, k and v in");
  const at::Tensor declared = declared_keys(config, config.window, T);
  Findings findings("wrong pairs of query and key");
  const Comparison comparison =
      judge_errors(found->ne(declared).to(at::kDouble), {0.0, "W keys, the query's own included"}, {"query", "key"});
  findings.add("", comparison);
  const std::string window = "with window " + std::to_string(*config.window) + " the queries see ";
  if (comparison.wrong > 0) {
    findings.fail(window + counts_in_words(*found) + " keys, expected " + counts_in_words(declared) +
                  window_diagnosis(config, *found, T));
  } else {
    findings.note(window + counts_in_words(*found) + " keys");
    if (declared.equal(declared_keys(config, std::nullopt, T))) findings.note("it hides nothing here");
  }
  return findings.result();
}

}  // namespace attn
