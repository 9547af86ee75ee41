// One tensor as plain numbers: what a line of a trace says about it. The tensor itself is not kept.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "trace/attention_trace.h"

namespace attn {

/// Statistics in float64, one number after the other, so that they depend on neither the dtype nor the threads.
/// Needs little memory beside the tensor: numbers are converted piece by piece.
TensorStats stats_of(const at::Tensor& tensor);

/// Everything about the tensor but its names: `pass`, `name` and `symbolic` are the caller's. The numbers themselves
/// only when there are at most `max_values` of them.
TraceStep describe(const at::Tensor& tensor, std::int64_t max_values);

/// The tensor's bytes under this name, in its own dtype. Throws std::logic_error for a dtype no step has.
KeptTensor keep(std::string name, const at::Tensor& tensor);

/// "float32", "int64", "bool": the names of the config, and LibTorch's own word for what no config can say.
std::string dtype_name(at::ScalarType dtype);

}  // namespace attn
