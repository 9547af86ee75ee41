// Between tensors and the vectors of double that the float64 loops work on. Private to this room.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace attn {

/// Row-major, in float64, from any dtype and device.
std::vector<double> numbers_of(const at::Tensor& tensor);

/// Row-major, of a bool tensor on any device.
std::vector<bool> flags_of(const at::Tensor& tensor);

/// A float64 tensor of its own on the CPU; as many numbers as `sizes` hold.
at::Tensor tensor_of(const std::vector<double>& numbers, at::IntArrayRef sizes);

}  // namespace attn
