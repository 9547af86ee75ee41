// Facts about the floating-point formats that a layer can run in.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace attn {

/// "float32", as in the config; another type by LibTorch's name.
std::string number_name(at::ScalarType type);

/// Distance from 1 to the next number. Throws Error for a type that is not a floating-point one.
double epsilon_of(at::ScalarType type);

/// A weight below this may be 0 by right: the smallest number of the format, or, where the exponential function of
/// common libraries gives 0 earlier, the smallest normal one.
double underflow_of(at::ScalarType type);

}  // namespace attn
