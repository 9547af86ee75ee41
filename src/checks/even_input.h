// An input on which every query gives all the keys it sees about the same weight, so that no dependence is lost to
// rounding: a key of weight e^-40 moves no bit, though the mask shows it. Used by the checks of what depends on what.
// What no input can even out, ALiBi's distances and a sink's share, is worked out by even_weights().
#pragma once

#include "checks/check_context.h"

namespace attn {

struct EvenInput {
  AttentionInput input;
  bool is_even = false;  ///< a norm, or a bias with large scores, may keep scores apart however small x is.
};

/// The run's sizes and padding: small numbers from N(0, 1), made smaller until the scaled scores of every query lie
/// within 1 of each other, and of 0 where a sink competes with them. A layer that shows neither scores nor q and k gets
/// numbers of size 1/16.
EvenInput even_input(CheckContext& context);

/// The weights that queries give their keys when all q k^T are 0, by the declared mask, ALiBi and sinks:
/// (B or 1, H, T, T_k) float64 on the CPU. A sink that the layer does not show counts as none.
at::Tensor even_weights(CheckContext& context);

}  // namespace attn
