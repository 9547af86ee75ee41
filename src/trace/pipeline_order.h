// Where a saved tensor stands in a run, and what its axes are called: by its name alone. No LibTorch.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// Smaller is earlier: what the run is given (parameters, anything that is no step), then `forward.*` in the order of
/// attention/steps.h, then `backward.*` the other way round, each `gradient.*` behind the step whose projection it
/// belongs to.
int pipeline_place(std::string_view name);

/// The step behind the prefix, "forward." or "backward."; empty when the name has another form or no such step exists.
std::string_view step_of(std::string_view name, std::string_view prefix);

/// A word for each of `axes` axes: "batch", "head", "query", "key" for forward.scores; "output", "input" for a weight.
std::vector<std::string> axis_names(std::string_view name, std::size_t axes);

}  // namespace attn
