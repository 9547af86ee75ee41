// The failing layer on an input small enough to try every known mistake on, and what a formula must give to be the
// layer's own. Private to diagnosis.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "checks/check_context.h"
#include "checks/reference/plain_layer.h"

namespace attn {

/// In float64 where the layer can be rebuilt there.
struct Patient {
  std::unique_ptr<Subject> rebuilt;  ///< keeps `layer` alive.
  Subject* layer = nullptr;
  LayerInput input;
  std::int64_t longest_sum = 1;

  AttentionInput subject_input() const { return {input.x, input.memory, input.real_keys}; }
  bool exact() const;  ///< in float64
};

/// Absent when the layer does not show its parameters.
std::optional<Patient> patient_of(CheckContext& context);

/// What a formula, right or wrong, gives, and how far from that rounding may take the layer's output.
struct Prediction {
  PlainLayerOutput numbers;  ///< float64
  double limit = 0.0;
};

using Formula = std::function<PlainLayerOutput(const LayerInput&)>;

/// `input`: the patient's, or one with other parameters.
Prediction predict(const Patient& patient, const LayerInput& input, const Formula& formula);

/// No further apart than `limit`, and numbers somewhere; NaN is equal to NaN. `open_rows` are not judged.
bool agree(const at::Tensor& actual, const at::Tensor& expected, double limit, const at::Tensor& open_rows = {});
bool agree(const at::Tensor& output, const Prediction& expected);

/// How far rounding may take a gradient of the layer, of which `largest` is the largest number.
double gradient_limit(const Patient& patient, double largest);

}  // namespace attn
