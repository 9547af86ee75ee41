// Shapes in letters: "(B, H, T, d_k)". What a step or a parameter should look like, by its name and the layer's kind.
// The numbers beside them come from the tensor itself; whether the two agree is for a reader, and for `verify`, to see.
#pragma once

#include <string>
#include <string_view>

#include "attention/steps.h"
#include "config/attention_config.h"

namespace attn {

/// A single-head layer has no H: "(B, T, d_k)" where a multi-head layer has "(B, H, T, d_k)".
std::string symbolic_shape(Step step, ModuleKind module);

/// By the parameter's name: "c_attn.weight" is "(3*H*d_k, d_model)". Throws std::logic_error for a name that no layer
/// and no embedding of ours has.
std::string symbolic_parameter_shape(std::string_view name, ModuleKind module);

}  // namespace attn
