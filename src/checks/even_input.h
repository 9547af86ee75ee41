// An input on which every query gives all the keys it sees about the same weight, so that no dependence is lost to
// rounding: a key of weight e^-40 moves no bit, though the mask shows it. Used by the checks of what depends on what.
#pragma once

#include "checks/check_context.h"

namespace attn {

/// (B, T, d_model) in the run's dtype: small numbers from N(0, 1), made smaller until the scaled scores of every query
/// lie within 1 of each other. A layer that shows no scores gets numbers of size 1/16.
at::Tensor even_input(CheckContext& context);

}  // namespace attn
