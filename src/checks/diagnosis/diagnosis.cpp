#include "checks/diagnosis/diagnosis.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "checks/diagnosis/cache_mistakes.h"
#include "checks/diagnosis/known_mistakes.h"
#include "checks/diagnosis/patient.h"
#include "checks/reference_run.h"
#include "core/text.h"

namespace attn {
namespace {

/// What the layer shows on the small input.
struct Symptoms {
  at::Tensor output, weights, dropped_weights;  ///< undefined: not shown.
};

Symptoms symptoms_of(const Patient& patient) {
  const at::NoGradGuard no_gradients;
  Symptoms symptoms;
  const std::optional<CapturedSteps> steps = patient.layer->forward_with_steps(patient.subject_input());
  if (!steps.has_value()) {
    symptoms.output = patient.layer->forward(patient.subject_input());
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

/// Collects the mistakes that reproduce `output`. One that cannot be told from the right formula explains nothing.
class Explanations {
 public:
  Explanations(const Patient& patient, const at::Tensor& output, const Prediction& right)
      : patient_(patient), output_(output), right_(right.numbers.output) {}

  void try_mistake(const std::string& words, const LayerInput& input, const Formula& formula) {
    try {
      const Prediction wrong = predict(patient_, input, formula);
      if (agree(output_, wrong) && !agree(right_, wrong)) words_.push_back(words);
    } catch (const std::exception&) {  // a formula that these sizes cannot have explains nothing, the next one may
    }
  }

  std::string take() const { return join(words_, ", or "); }

 private:
  const Patient& patient_;
  const at::Tensor& output_;
  const at::Tensor& right_;
  std::vector<std::string> words_;
};

std::string explain_forward(const Patient& patient, const Symptoms& symptoms, const Prediction& right) {
  for (const auto& dropout : {dropout_between(symptoms.weights, symptoms.dropped_weights, "weights"),
                              dropout_between(right.numbers.weights, symptoms.weights, "weights"),
                              dropout_between(right.numbers.output, symptoms.output, "outputs")}) {
    if (dropout.has_value()) return *dropout;
  }
  Explanations explanations(patient, symptoms.output, right);
  for (const KnownMistake& mistake : known_mistakes(patient.input)) {
    explanations.try_mistake(mistake.words, mistake.input,
                             [&](const LayerInput& input) { return plain_layer(input, mistake.rules); });
  }
  return explanations.take();
}

/// Weights of hidden keys may be too small for the output to show them: e^-50 of a softcap that comes after the mask.
std::string explain_hidden_weights(const Patient& patient, const Symptoms& symptoms, const Prediction& right) {
  constexpr double kRelative = 1e-6;
  if (!symptoms.weights.defined() || symptoms.weights.sizes() != right.numbers.weights.sizes()) return "";
  const at::Tensor hidden = right.numbers.weights.eq(0);
  const at::Tensor shown = symptoms.weights.masked_select(hidden);
  if (!shown.ne(0).any().item<bool>()) return "";
  std::vector<std::string> explanations;
  for (const KnownMistake& mistake : known_mistakes(patient.input)) {
    const PlainLayerOutput wrong = plain_layer(in_double(mistake.input), mistake.rules);
    if (wrong.open_rows.defined()) continue;
    const at::Tensor expected = wrong.weights.masked_select(hidden);
    const at::Tensor agrees = (shown - expected).abs().le(kRelative * expected.abs());  // false for NaN
    if (agrees.all().item<bool>()) explanations.push_back(mistake.words);
  }
  return join(explanations, ", or ");
}

/// Half the tokens, one, and the others two by two: every kind of call there is.
std::vector<std::int64_t> lengths_of_pieces(std::int64_t T) {
  std::vector<std::int64_t> lengths{T / 2, 1};
  for (std::int64_t left = T - T / 2 - 1; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min<std::int64_t>(left, 2));
  }
  return lengths;
}

/// Undefined: the layer keeps no keys and values.
at::Tensor output_in_pieces(const Patient& patient, const std::vector<std::int64_t>& lengths) {
  const auto pieces = patient.layer->forward_in_pieces(patient.subject_input(), lengths);
  if (!pieces.has_value()) return {};
  std::vector<at::Tensor> outputs;
  for (const DecodedPiece& piece : *pieces) outputs.push_back(piece.output);
  return at::cat(outputs, 1);
}

/// Whether the run that was right is so once more, after the cache was emptied.
bool right_again(const Patient& patient, const std::vector<std::int64_t>& lengths, const Prediction& right) {
  try {
    return agree(output_in_pieces(patient, lengths), right);
  } catch (const SubjectFailure&) {
    return false;
  }
}

/// Of a layer that is right on all tokens at once.
std::string explain_pieces(const Patient& patient) {
  if (patient.input.x.size(1) < 2) return "";
  const std::vector<std::int64_t> lengths = lengths_of_pieces(patient.input.x.size(1));
  const at::Tensor output = output_in_pieces(patient, lengths);
  if (!output.defined()) return "";
  const auto formula = [&](const PieceRules& rules) -> Formula {
    return [&lengths, rules](const LayerInput& input) { return plain_pieces(input, lengths, rules); };
  };
  const Prediction right = predict(patient, patient.input, formula(PieceRules{}));
  if (agree(output, right)) {
    if (right_again(patient, lengths, right)) return "";
    return "a reset does not empty the cache: the first run in pieces is right, the same run once more is not";
  }
  Explanations explanations(patient, output, right);
  for (const CacheMistake& mistake : known_cache_mistakes(patient.input)) {
    explanations.try_mistake(mistake.words, patient.input, formula(mistake.rules));
  }
  return explanations.take();
}

using Gradients = std::map<std::string, at::Tensor>;

/// The layer's gradients, beside what formulas give.
class BackwardSymptoms {
 public:
  BackwardSymptoms(CheckContext& context, const Patient& patient)
      : patient_(patient),
        exact_(in_double(patient.input)),
        d_output_(context.draw(patient.input.x.sizes().vec(), Draw::kGradient).to(patient.input.x.options())),
        found_(run_layer(*patient.layer, context.run(), patient.subject_input(), d_output_).gradients) {}

  Gradients of_formula(const LayerInput& input, const LayerRules& rules) const {
    Gradients gradients = plain_layer_backward(input, rules, d_output_.to(at::kDouble));
    for (auto& [name, gradient] : gradients) {
      if (!gradient.defined()) gradient = at::zeros_like(place(name));
    }
    return gradients;
  }

  /// Of each name; a gradient that did not arrive is 0.
  bool agree_with(const Gradients& expected) const {
    double largest = 0.0;
    for (const auto& [name, gradient] : expected) largest = std::max(largest, gradient.abs().max().item<double>());
    const double limit = gradient_limit(patient_, largest);
    return std::all_of(expected.begin(), expected.end(), [&](const auto& named) {
      const auto found = found_.find(named.first);
      const bool arrived = found != found_.end() && found->second.defined();
      const at::Tensor gradient = arrived ? found->second : at::zeros_like(place(named.first));
      return agree(gradient, named.second, limit);
    });
  }

  const LayerInput& input() const { return exact_; }

 private:
  const at::Tensor& place(const std::string& name) const {
    return name == "x" ? exact_.x : name == "memory" ? exact_.memory : exact_.parameters.at(name);
  }

  const Patient& patient_;
  LayerInput exact_;
  at::Tensor d_output_;
  Gradients found_;
};

std::string explain_backward(CheckContext& context, const Patient& patient) {
  const BackwardSymptoms symptoms(context, patient);
  const Gradients right = symptoms.of_formula(symptoms.input(), rules_of(patient.input.config));
  if (symptoms.agree_with(right)) return "";
  std::vector<std::string> explanations;
  for (const KnownMistake& mistake : known_gradient_mistakes(symptoms.input())) {
    if (symptoms.agree_with(symptoms.of_formula(mistake.input, mistake.rules))) explanations.push_back(mistake.words);
  }
  const auto try_one = [&](const std::string& name, double factor, const std::string& words) {
    Gradients wrong = right;
    wrong[name] = right.at(name) * factor;
    if (symptoms.agree_with(wrong)) explanations.push_back(words);
  };
  for (const auto& [name, gradient] : right) {
    try_one(name, 0.0, "no gradient goes back to " + name);
    try_one(name, 2.0, "the gradient of " + name + " is doubled");
  }
  return join(explanations, ", or ");
}

/// Of a layer that is right in float64: whether its numbers are too large for the run's own format.
std::string explain_overflow(CheckContext& context, const Patient& patient) {
  if (patient.rebuilt == nullptr) return "";
  const at::Tensor output = context.subject().forward(context.input());
  if (output.scalar_type() == at::kDouble || at::isfinite(output).all().item<bool>()) return "";
  return "numbers overflow in " + to_string(context.run().dtype) + ": in float64 all is right";
}

std::string explain(CheckContext& context) {
  if (const std::string what = what_is_not_finite(context); !what.empty()) {
    return what + " holds NaN or infinity before the layer begins";
  }
  const std::optional<Patient> patient = patient_of(context);
  if (!patient.has_value()) return "";
  const Symptoms symptoms = symptoms_of(*patient);
  const LayerRules rules = rules_of(patient->input.config);
  const Prediction right =
      predict(*patient, patient->input, [&](const LayerInput& input) { return plain_layer(input, rules); });
  if (!agree(symptoms.output, right)) return explain_forward(*patient, symptoms, right);
  if (const std::string words = explain_hidden_weights(*patient, symptoms, right); !words.empty()) return words;
  if (const std::string words = explain_pieces(*patient); !words.empty()) return words;
  if (const std::string words = explain_overflow(context, *patient); !words.empty()) return words;
  return explain_backward(context, *patient);
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
