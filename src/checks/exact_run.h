// The layer rebuilt in float64, for what a coarser format takes for rounding or rounds away.
#pragma once

#include <memory>
#include <optional>

#include "checks/check_context.h"

namespace attn {

/// The subject rebuilt in float64, in eval mode; null when it cannot be rebuilt.
std::unique_ptr<Subject> rebuilt_in_float64(Subject& subject);

struct ExactRun {
  std::unique_ptr<Subject> subject;  ///< rebuilt_in_float64()
  AttentionInput input;              ///< float64
};

/// `subject` (the context's, or another one of its config) and the input in float64. Absent in a run that is in float64
/// itself, and when the subject cannot be rebuilt.
std::optional<ExactRun> exact_run(CheckContext& context, Subject& subject, const AttentionInput& input);
std::optional<ExactRun> exact_run(CheckContext& context);

/// How far two honest float64 runs of the context's input may be apart. Absent where the layer does not show its
/// parameters.
std::optional<ErrorBudget> exact_limit(CheckContext& context);

}  // namespace attn
