// Where a saved tensor stands in a run, and what its axes are called: by its name alone. No LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// Smaller is earlier: what the run is given (parameters, anything that is no step), then `forward.*` call by call in
/// the order of attention/steps.h, then `backward.*` the other way round, each `gradient.*` behind the step whose
/// projection it belongs to.
std::int64_t pipeline_place(std::string_view name);

/// The step behind the prefix, "forward." or "backward.", and behind the number of a later call, "forward.3."; empty
/// when the name has another form or no such step exists.
std::string_view step_of(std::string_view name, std::string_view prefix);

/// A word for each of `axes` axes: "batch", "head", "query", "key" for forward.scores; "output", "input" for a weight.
/// `grouped`: keys and values have heads of their own, "key head".
std::vector<std::string> axis_names(std::string_view name, std::size_t axes, bool grouped = false);

}  // namespace attn
