// What every check is given: the subject, what it is declared to be, an input, and the runs that several checks share.
// One check is one function from this to a CheckResult; all of them are in check_list.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checks/captured_pass.h"
#include "checks/findings.h"
#include "checks/guarded_subject.h"
#include "checks/input_parts.h"

namespace attn {

class ReferenceRun;

/// What random numbers are for: each use its own, so that one check's draws do not depend on another's.
enum class Draw : std::uint64_t {
  kGradient = 1,
  kFuture,
  kOtherInput,
  kQuery,
  kKey,
  kValue,
  kEven,
  kDirection,
  kSample,
  kMemory
};

class CheckContext {
 public:
  /// The input is on the run's device, in its dtype. `subject` must outlive the context. `quick`: every budget() is a
  /// twentieth.
  CheckContext(Subject& subject, RunConfig run, const AttentionInput& input, bool quick = false);

  Subject& subject() { return *subject_; }
  const AttentionConfig& config() const { return subject_->config(); }
  const RunConfig& run() const { return run_; }
  const AttentionInput& input() const { return input_; }  ///< x, memory, padding; see input_parts.h.
  const at::Tensor& x() const { return input_.x; }
  bool has_memory() const { return input_.memory.defined(); }
  std::int64_t B() const { return x().size(0); }
  std::int64_t T() const { return x().size(1); }  ///< of the queries.
  std::int64_t T_k() const { return has_memory() ? input_.memory.size(1) : T(); }
  std::int64_t longest() const { return std::max(T(), T_k()); }  ///< what a pass costs is reckoned by
  std::vector<std::int64_t> heads_shape() const { return {B(), config().H, T(), config().d_k()}; }  ///< q, context
  std::vector<std::int64_t> keys_shape() const { return {B(), config().H_kv(), T_k(), config().d_k()}; }  ///< k, v
  std::vector<std::int64_t> pairs_shape() const { return {B(), config().H, T(), T_k()}; }  ///< scores, weights

  /// The declared mask with the input's padding, (B or 1, 1, T, T_k) bool, true = may look; see may_look.h.
  const at::Tensor& visible();

  /// The same for one batch item, (1, 1, T, T_k).
  at::Tensor visible_to(std::int64_t item);

  /// (B or 1, 1, T) bool: queries that see at least one key.
  at::Tensor sees_something() { return visible().any(-1); }

  /// What a check may spend (multiply-adds, say) of its usual budget: a twentieth with --quick.
  double budget(double usual) const { return quick_ ? usual / 20.0 : usual; }

  /// One forward and backward pass in eval mode, made when first asked for; null when the subject shows no steps.
  const CapturedPass* pass();

  /// The step's value in that pass; null when the subject does not show it. Throws SubjectFailure for a wrong shape.
  const at::Tensor* step(Step step, const std::vector<std::int64_t>& expected_shape);

  /// The layer beside the float64 loops and the plain formula; see why_not() before asking it for numbers.
  ReferenceRun& reference();

  /// The same for the layer rebuilt in float64; null when the run is in float64 already, or it cannot be rebuilt.
  ReferenceRun* exact_reference();

  /// Frees what both hold, once the last check that needs them is done; output_budget() stays.
  void forget_references();

  /// The parameter of this name, detached; undefined when the subject shows none.
  at::Tensor parameter(const std::string& name);

  /// How far an honest layer's output may be from the truth on the run's input: the rule of error_budget.h, or, when
  /// the subject does not show its parameters, the rule's cap. What compares two honest runs allows twice that.
  ErrorBudget output_budget();

  /// Numbers from N(0, 1), in the run's dtype on its device.
  at::Tensor draw(const std::vector<std::int64_t>& shape, Draw use) const;

 private:
  std::unique_ptr<Subject> subject_;
  RunConfig run_;
  AttentionInput input_;
  at::Tensor visible_;
  bool quick_;
  bool pass_made_ = false;
  std::optional<CapturedPass> pass_;
  std::shared_ptr<ReferenceRun> reference_, exact_reference_;
  bool exact_reference_made_ = false;
  std::optional<ErrorBudget> output_budget_;
};

// One function a check; names, questions and explanations are in check_table.cpp.
CheckResult check_shapes(CheckContext& context);
CheckResult check_finite(CheckContext& context);
CheckResult check_row_sums(CheckContext& context);
CheckResult check_masked_weights(CheckContext& context);
CheckResult check_first_token(CheckContext& context);
CheckResult check_scale(CheckContext& context);
CheckResult check_sink(CheckContext& context);
CheckResult check_rope_relative(CheckContext& context);
CheckResult check_causality(CheckContext& context);
CheckResult check_causality_gradient(CheckContext& context);
CheckResult check_effective_mask(CheckContext& context);
CheckResult check_mask_control(CheckContext& context);
CheckResult check_window(CheckContext& context);
CheckResult check_padding(CheckContext& context);
CheckResult check_truncation(CheckContext& context);
CheckResult check_kv_cache(CheckContext& context);
CheckResult check_sdpa_forward(CheckContext& context);
CheckResult check_sdpa_backward(CheckContext& context);
CheckResult check_reference_forward(CheckContext& context);
CheckResult check_reference_weights(CheckContext& context);
CheckResult check_reference_backward(CheckContext& context);
CheckResult check_gradient(CheckContext& context);
CheckResult check_batch_independence(CheckContext& context);
CheckResult check_head_independence(CheckContext& context);
CheckResult check_gqa_map(CheckContext& context);
CheckResult check_permutation(CheckContext& context);
CheckResult check_nan_propagation(CheckContext& context);
CheckResult check_determinism(CheckContext& context);
CheckResult check_dropout(CheckContext& context);

}  // namespace attn
