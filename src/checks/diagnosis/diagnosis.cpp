#include "checks/diagnosis/diagnosis.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "checks/diagnosis/known_mistakes.h"
#include "checks/input_parts.h"
#include "checks/reference_run.h"
#include "core/text.h"

namespace attn {
namespace {

/// The failing layer on an input small enough to try every mistake on, in float64 where it can be rebuilt there.
struct Patient {
  std::unique_ptr<Subject> rebuilt;  ///< keeps `layer` alive.
  Subject* layer = nullptr;
  LayerInput input;
  std::int64_t longest_sum = 1;
};

/// `count` tokens: the first, or, where there is padding at the start, the last.
at::Tensor some_tokens(const at::Tensor& tensor, std::int64_t count, bool last) {
  if (!tensor.defined() || tensor.size(1) <= count) return tensor;
  return tensor.narrow(1, last ? tensor.size(1) - count : 0, count);
}

/// A couple of items, so that one can be taken for another, and as many tokens as about a second allows.
AttentionInput small_part(const AttentionInput& input, const AttentionConfig& config) {
  constexpr std::int64_t kItems = 2, kMostTokens = 64, kFewestTokens = 12;
  constexpr double kMultiplyAdds = 2e10, kRuns = 60.0;
  const double of_a_token = 4.0 * static_cast<double>(config.d_model) * static_cast<double>(config.heads_width());
  const double affordable = kMultiplyAdds / (kRuns * static_cast<double>(kItems) * of_a_token);
  const auto tokens = static_cast<std::int64_t>(std::clamp<double>(affordable, kFewestTokens, kMostTokens));
  AttentionInput part = items_of(input, 0, std::min(kItems, input.x.size(0)));
  const bool padded_at_the_start =
      part.real_keys.defined() && part.real_keys.select(1, 0).logical_not().any().item<bool>();
  part.x = some_tokens(part.x, tokens, padded_at_the_start && !part.memory.defined());
  part.memory = some_tokens(part.memory, tokens, padded_at_the_start);
  part.real_keys = some_tokens(part.real_keys, tokens, padded_at_the_start);
  return part;
}

std::optional<Patient> patient_of(CheckContext& context) {
  Patient patient;
  patient.layer = &context.subject();
  AttentionInput input = small_part(context.input(), context.config());
  if (input.x.scalar_type() != at::kDouble) patient.rebuilt = context.subject().rebuild(Dtype::kFloat64);
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

AttentionInput subject_input(const Patient& patient) {
  return {patient.input.x, patient.input.memory, patient.input.real_keys};
}

LayerInput in_double(const LayerInput& input) {
  LayerInput exact = input;
  exact.x = input.x.to(at::kDouble);
  if (input.memory.defined()) exact.memory = input.memory.to(at::kDouble);
  for (auto& [name, value] : exact.parameters) value = value.to(at::kDouble);
  return exact;
}

/// The float64 rounding of a whole layer.
double exact_limit(double largest, std::int64_t longest_sum) {
  return 1e-12 * std::max(1.0, largest) * std::sqrt(static_cast<double>(longest_sum));
}

/// What a formula, right or wrong, gives, and how far from that rounding may take the layer's output.
struct Prediction {
  PlainLayerOutput numbers;  ///< float64
  double limit = 0.0;
};

Prediction predict(const Patient& patient, const LayerInput& input, const LayerRules& rules) {
  const auto finite = [](const at::Tensor& tensor) { return tensor.nan_to_num(0.0, 0.0, 0.0); };
  Prediction prediction{plain_layer(in_double(input), rules)};
  const at::Tensor exact = finite(prediction.numbers.output);
  prediction.limit = input.x.scalar_type() == at::kDouble
                         ? exact_limit(exact.abs().max().item<double>(), patient.longest_sum)
                         : budget_from(exact, finite(plain_layer(input, rules).output), patient.longest_sum).max_abs;
  return prediction;
}

/// Equal within rounding, where the formula gives a number at all: under a wrong mask a row may see no key.
bool agree(const at::Tensor& actual, const at::Tensor& expected, double limit) {
  if (actual.sizes() != expected.sizes()) return false;
  const at::Tensor judged = expected.isnan().logical_not();
  if (!judged.any().item<bool>()) return false;
  const at::Tensor errors = (actual.to(at::kDouble) - expected).abs().masked_select(judged);
  return errors.max().item<double>() <= limit;  // false for NaN
}

/// What the layer shows on the small input.
struct Symptoms {
  at::Tensor output, weights, dropped_weights;  ///< undefined: not shown.
};

Symptoms symptoms_of(const Patient& patient) {
  const at::NoGradGuard no_gradients;
  Symptoms symptoms;
  const std::optional<CapturedSteps> steps = patient.layer->forward_with_steps(subject_input(patient));
  if (!steps.has_value()) {
    symptoms.output = patient.layer->forward(subject_input(patient));
    return symptoms;
  }
  symptoms.output = steps->output;
  const auto take = [&](Step step, at::Tensor& target) {
    const auto found = steps->values.find(step);
    if (found != steps->values.end()) target = found->second.to(at::kDouble);
  };
  take(Step::kWeights, symptoms.weights);
  take(Step::kDroppedWeights, symptoms.dropped_weights);
  return symptoms;
}

/// "19 % of the weights are 0, the others multiplied by 1.25", where that is what dropout makes of `whole`.
std::optional<std::string> dropout_between(const at::Tensor& whole, const at::Tensor& seen, const std::string& what) {
  if (!whole.defined() || !seen.defined() || whole.sizes() != seen.sizes()) return std::nullopt;
  const at::Tensor judged = whole.abs() > 1e-9;
  const at::Tensor before = whole.masked_select(judged), after = seen.to(at::kDouble).masked_select(judged);
  const at::Tensor factors = (after / before).masked_select(after.ne(0));
  const double count = static_cast<double>(before.numel()), kept = static_cast<double>(factors.numel());
  if (kept == 0.0 || kept == count) return std::nullopt;
  const double factor = factors.mean().item<double>();
  const double share = 1.0 - 1.0 / factor, dropped = 1.0 - kept / count;
  const bool one_factor = (factors / factor - 1.0).abs().max().item<double>() <= 1e-5;
  const bool share_fits = std::abs(dropped - share) <= 6.0 * std::sqrt(std::abs(share * (1.0 - share)) / count);
  if (!(factor > 1.0 && one_factor && share_fits)) return std::nullopt;
  return "dropout is active in eval: " + format_number(100.0 * dropped, 2) + " % of the " + what +
         " are 0, the others are multiplied by " + format_number(factor);
}

std::string explain_forward(const Patient& patient, const Symptoms& symptoms, const PlainLayerOutput& right) {
  for (const auto& dropout : {dropout_between(symptoms.weights, symptoms.dropped_weights, "weights"),
                              dropout_between(right.weights, symptoms.weights, "weights"),
                              dropout_between(right.output, symptoms.output, "outputs")}) {
    if (dropout.has_value()) return *dropout;
  }
  std::vector<std::string> explanations;
  for (const KnownMistake& mistake : known_mistakes(patient.input)) {
    const Prediction wrong = predict(patient, mistake.input, mistake.rules);
    if (agree(symptoms.output, wrong.numbers.output, wrong.limit)) explanations.push_back(mistake.words);
  }
  return join(explanations, ", or ");
}

std::string explain_backward(CheckContext& context, const Patient& patient) {
  const at::Tensor d_output =
      context.draw(patient.input.x.sizes().vec(), Draw::kGradient).to(patient.input.x.options());
  const LayerNumbers numbers = run_layer(*patient.layer, context.run(), subject_input(patient), d_output);
  const LayerInput exact = in_double(patient.input);
  const auto agrees = [&](const std::map<std::string, at::Tensor>& expected) {
    double largest = 0.0;
    for (const auto& [name, gradient] : expected) {
      if (gradient.defined()) largest = std::max(largest, gradient.abs().max().item<double>());
    }
    const at::ScalarType type = patient.input.x.scalar_type();
    const double limit = type == at::kDouble ? exact_limit(largest, patient.longest_sum)
                                             : cap_of({largest}, type, patient.longest_sum).max_abs;
    for (const auto& [name, gradient] : expected) {
      const auto found = numbers.gradients.find(name);
      const bool arrived = found != numbers.gradients.end() && found->second.defined();
      if (!gradient.defined() && !arrived) continue;
      const at::Tensor& place = name == "x" ? exact.x : name == "memory" ? exact.memory : exact.parameters.at(name);
      const at::Tensor zeros = at::zeros_like(place);
      if (!agree(arrived ? found->second : zeros, gradient.defined() ? gradient : zeros, limit)) return false;
    }
    return true;
  };
  const at::Tensor exact_d_output = d_output.to(at::kDouble);
  if (agrees(plain_layer_backward(exact, rules_of(exact.config), exact_d_output))) return "";
  std::vector<std::string> explanations;
  for (const KnownMistake& mistake : known_gradient_mistakes(exact)) {
    if (agrees(plain_layer_backward(mistake.input, mistake.rules, exact_d_output))) {
      explanations.push_back(mistake.words);
    }
  }
  return join(explanations, ", or ");
}

std::string explain(CheckContext& context) {
  const std::optional<Patient> patient = patient_of(context);
  if (!patient.has_value()) return "";
  const Symptoms symptoms = symptoms_of(*patient);
  const Prediction right = predict(*patient, patient->input, rules_of(patient->input.config));
  if (agree(symptoms.output, right.numbers.output, right.limit)) return explain_backward(context, *patient);
  return explain_forward(*patient, symptoms, right.numbers);
}

}  // namespace

std::string explain_failure(CheckContext& context) {
  try {
    const at::NoGradGuard no_gradients;  // explain_backward() switches them on where it needs them
    return explain(context);
  } catch (const std::exception&) {
    return "";  // a layer that throws has been reported by the checks; there is nothing to compare with
  }
}

}  // namespace attn
