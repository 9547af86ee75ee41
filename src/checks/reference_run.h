// The judged layer, the float64 loops and the plain formula side by side on one input: made once, shared by the three
// reference checks and by whoever needs a limit for the output. Above a budget of multiply-adds the loops take a
// sample.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "checks/reference/error_budget.h"
#include "checks/reference/plain_layer.h"
#include "checks/reference/reference_layer.h"
#include "checks/reference_sample.h"
#include "checks/subject.h"

namespace attn {

class CheckContext;

/// Multiply-adds of the loops, forward and backward: about five seconds of one processor core. With --quick a
/// twentieth.
inline constexpr double kReferenceLayerMultiplyAdds = 4e9;

/// One layer's numbers, only the judged rows of output and weights.
struct LayerNumbers {
  at::Tensor output;                            ///< (B, R, d_model)
  at::Tensor weights;                           ///< (B, H, R, T_k); undefined: not shown.
  std::map<std::string, at::Tensor> gradients;  ///< "x", "memory" and each parameter; undefined or missing: none came.
  RoundingSize size;                            ///< of the output; only of the plain formula's numbers.
};

/// A forward and a backward pass of sum(output * d_output); every row. Throws SubjectFailure.
LayerNumbers run_layer(Subject& subject, const RunConfig& run, const AttentionInput& input, const at::Tensor& d_output);

/// The parameters that the config's layout has, taken from those that the subject shows.
struct ShownParameters {
  std::map<std::string, at::Tensor> values;  ///< detached
  std::string missing;                       ///< "c_attn.bias, c_proj.weight of shape (8, 8)"; empty: all are there.
};
ShownParameters shown_parameters(Subject& subject);

/// "x", "memory" or the name of a parameter that holds NaN or infinity; empty: all numbers are finite.
std::string what_is_not_finite(CheckContext& context);

class ReferenceRun {
 public:
  /// Nothing is run yet. Above the budget the context's input is sampled.
  explicit ReferenceRun(CheckContext& context);

  /// The same for `exact`, the context's layer rebuilt in float64, on the sample of `own`, which must outlive this.
  ReferenceRun(CheckContext& context, std::unique_ptr<Subject> exact, ReferenceRun& own);

  /// Why the loops cannot judge this layer: "the layer shows no c_attn.bias". Empty: they can.
  const std::string& why_not() const { return why_not_; }

  const ReferenceSample& sample() const { return sample_; }

  // The longest sum behind an element of the output, and of a gradient.
  std::int64_t longest_sum() const;
  std::int64_t longest_gradient_sum() const;

  // Each is worked out when first asked for. The loops' are float64 on the CPU, the others in their own dtype.
  const LayerNumbers& layer();  ///< all of it. Throws SubjectFailure.
  const LayerNumbers& loops();  ///< without gradients.
  const LayerNumbers&
  plain();  ///< without gradients; with engine sdpa by LibTorch's function, which rounds its own way.
  const std::map<std::string, at::Tensor>& loops_gradients();
  const std::map<std::string, at::Tensor>& plain_gradients();

  /// What one rounding of every number that goes in does to the gradients; see gradient_change_by_rounding().
  double gradient_rounding();

 private:
  void take_parameters();
  at::Tensor d_output() const;  // (B, T, d_model), 0 in the rows that are not judged
  at::Tensor judged_rows(const at::Tensor& whole, std::int64_t axis) const;

  CheckContext* context_;
  std::unique_ptr<Subject> owned_;
  Subject* subject_;
  ReferenceRun* same_ = nullptr;  ///< a run of the very same numbers, whose loops can be taken.
  ReferenceSample sample_;
  LayerInput input_;
  std::string why_not_;
  std::optional<LayerNumbers> layer_, loops_, plain_;
  std::optional<std::pair<ReferenceLayerInput, ReferenceLayerOutput>> loops_forward_;  ///< for the loops' backward pass
  std::optional<std::map<std::string, at::Tensor>> loops_gradients_, plain_gradients_;
  std::optional<double> gradient_rounding_;
};

}  // namespace attn
