#include "trace/tensor_record.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace attn {
namespace {

constexpr std::int64_t kPieceSize = 1 << 18;  ///< numbers converted at once: 2 MiB as float64.

/// Calls `visit` with every number, row by row.
void for_each_number(const at::Tensor& tensor, const std::function<void(const double*, std::int64_t)>& visit) {
  const at::Tensor flat = tensor.detach().contiguous().view({-1});
  for (std::int64_t start = 0; start < flat.numel(); start += kPieceSize) {
    const std::int64_t end = std::min(start + kPieceSize, flat.numel());
    const at::Tensor piece = flat.slice(0, start, end).to(at::kCPU, at::kDouble).contiguous();
    visit(piece.const_data_ptr<double>(), end - start);
  }
}

/// The word of .safetensors.
std::string file_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kBFloat16:
      return "BF16";
    case at::kHalf:
      return "F16";
    case at::kLong:
      return "I64";
    default:
      throw std::logic_error(std::string("a step of dtype ") + c10::toString(dtype));
  }
}

}  // namespace

TensorStats stats_of(const at::Tensor& tensor) {
  TensorStats stats;
  double low = 0.0;
  double high = 0.0;
  double sum = 0.0;
  std::int64_t finite = 0;
  for_each_number(tensor, [&](const double* numbers, std::int64_t count) {
    for (std::int64_t index = 0; index < count; ++index) {
      const double number = numbers[index];
      if (std::isnan(number)) {
        ++stats.nan;
      } else if (std::isinf(number)) {
        ++stats.inf;
      } else {
        low = finite == 0 ? number : std::min(low, number);
        high = finite == 0 ? number : std::max(high, number);
        sum += number;
        ++finite;
      }
    }
  });
  if (finite == 0) return stats;

  const double mean = sum / static_cast<double>(finite);
  double squares = 0.0;  // around the mean, in a second pass: the difference of two large sums would lose everything
  for_each_number(tensor, [&](const double* numbers, std::int64_t count) {
    for (std::int64_t index = 0; index < count; ++index) {
      if (std::isfinite(numbers[index])) squares += (numbers[index] - mean) * (numbers[index] - mean);
    }
  });
  stats.min = low;
  stats.max = high;
  stats.mean = mean;
  stats.std = std::sqrt(squares / static_cast<double>(finite));
  return stats;
}

TraceStep describe(const at::Tensor& tensor, std::int64_t max_values) {
  TraceStep step;
  step.shape = tensor.sizes().vec();
  step.dtype = dtype_name(tensor.scalar_type());
  step.strides = tensor.strides().vec();
  step.contiguous = tensor.is_contiguous();
  step.bytes = tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
  step.stats = stats_of(tensor);
  if (tensor.numel() <= max_values) {
    for_each_number(tensor, [&](const double* numbers, std::int64_t count) {
      step.values.insert(step.values.end(), numbers, numbers + count);
    });
  }
  return step;
}

KeptTensor keep(std::string name, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous();
  const char* bytes = static_cast<const char*>(flat.const_data_ptr());
  return {std::move(name), file_dtype(flat.scalar_type()), flat.sizes().vec(), std::string(bytes, flat.nbytes())};
}

std::string dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    case at::kLong:
      return "int64";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(dtype);
  }
}

}  // namespace attn
