#include "checks/diagnosis/patient.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "checks/reference/error_budget.h"
#include "checks/reference_run.h"

namespace attn {
namespace {

/// `count` of the tokens, or all where there are fewer.
at::Tensor some_tokens(const at::Tensor& tensor, std::int64_t first, std::int64_t count) {
  return tensor.defined() && tensor.size(1) > count ? tensor.narrow(1, first, count) : tensor;
}

/// A couple of items, so that one can be taken for another: the first and, with padding, one that is padded otherwise.
std::vector<std::int64_t> some_items(const AttentionInput& input) {
  const std::int64_t B = input.x.size(0);
  if (B == 1) return {0};
  if (!input.real_keys.defined()) return {0, 1};
  const at::Tensor unlike = input.real_keys.ne(input.real_keys.narrow(0, 0, 1)).any(1);  // (B)
  return {0, unlike.any().item<bool>() ? unlike.to(at::kLong).argmax().item<std::int64_t>() : 1};
}

/// The middle of the part is where padding begins or ends, so that it matters which side is padded.
std::int64_t first_token(const at::Tensor& real_keys, std::int64_t count) {
  if (!real_keys.defined() || real_keys.size(1) <= count) return 0;
  const std::int64_t T_k = real_keys.size(1);
  const at::Tensor borders = real_keys.narrow(1, 1, T_k - 1).ne(real_keys.narrow(1, 0, T_k - 1)).any(0);
  if (!borders.any().item<bool>()) return 0;
  const std::int64_t border = borders.to(at::kLong).argmax().item<std::int64_t>() + 1;
  return std::clamp<std::int64_t>(border - count / 2, 0, T_k - count);
}

/// As many tokens as about a second allows.
AttentionInput small_part(const AttentionInput& input, const AttentionConfig& config) {
  constexpr std::int64_t kMostTokens = 64, kFewestTokens = 12;
  constexpr double kMultiplyAdds = 2e10, kRuns = 100.0, kItems = 2.0;
  const double of_a_token = 4.0 * static_cast<double>(config.d_model) * static_cast<double>(config.heads_width());
  const double affordable = kMultiplyAdds / (kRuns * kItems * of_a_token);
  const auto tokens = static_cast<std::int64_t>(std::clamp<double>(affordable, kFewestTokens, kMostTokens));
  AttentionInput part = chosen_items(input, some_items(input));
  const std::int64_t first = first_token(part.real_keys, tokens);
  part.x = some_tokens(part.x, part.memory.defined() ? 0 : first, tokens);
  part.memory = some_tokens(part.memory, first, tokens);
  part.real_keys = some_tokens(part.real_keys, first, tokens);
  return part;
}

/// The float64 rounding of a whole layer.
double exact_limit(double largest, std::int64_t longest_sum) {
  return 1e-12 * std::max(1.0, largest) * std::sqrt(static_cast<double>(longest_sum));
}

}  // namespace

bool Patient::exact() const { return input.x.scalar_type() == at::kDouble; }

std::optional<Patient> patient_of(CheckContext& context) {
  Patient patient;
  patient.layer = &context.subject();
  AttentionInput input = small_part(context.input(), context.config());
  patient.rebuilt =
      context.subject().rebuild(Dtype::kFloat64);  // of float64 too: it must not remember the checks' runs
  if (patient.rebuilt != nullptr) {
    patient.layer = patient.rebuilt.get();
    input = in_type(input, at::kDouble);
  }
  patient.layer->train(false);
  ShownParameters shown = shown_parameters(*patient.layer);
  if (!shown.missing.empty()) return std::nullopt;
  patient.input = {context.config(), input.x, std::move(shown.values), input.memory, input.real_keys};
  const std::int64_t tokens = std::max(input.x.size(1), patient.input.key_len());
  patient.longest_sum = std::max({input.x.size(0) * tokens, context.config().d_model, context.config().heads_width()});
  return patient;
}

Prediction predict(const Patient& patient, const LayerInput& input, const Formula& formula) {
  const auto finite = [](const at::Tensor& tensor) { return tensor.nan_to_num(0.0, 0.0, 0.0); };
  Prediction prediction{formula(in_double(input))};
  const at::Tensor exact = finite(prediction.numbers.output);
  prediction.limit = patient.exact() ? exact_limit(exact.abs().max().item<double>(), patient.longest_sum)
                                     : budget_from(exact, finite(formula(input).output), patient.longest_sum).max_abs;
  return prediction;
}

bool agree(const at::Tensor& actual, const at::Tensor& expected, double limit, const at::Tensor& open_rows) {
  if (actual.sizes() != expected.sizes()) return false;
  at::Tensor judged = actual.isnan().logical_and(expected.isnan()).logical_not();
  if (open_rows.defined()) judged = judged.logical_and(open_rows.logical_not().unsqueeze(-1));
  const at::Tensor errors = (actual.to(at::kDouble) - expected).abs().masked_select(judged);
  return errors.numel() > 0 && errors.max().item<double>() <= limit;  // false for NaN
}

bool agree(const at::Tensor& output, const Prediction& expected) {
  return agree(output, expected.numbers.output, expected.limit, expected.numbers.open_rows);
}

double gradient_limit(const Patient& patient, double largest) {
  if (patient.exact()) return exact_limit(largest, patient.longest_sum);
  return cap_of({largest}, patient.input.x.scalar_type(), patient.longest_sum).max_abs;
}

}  // namespace attn
