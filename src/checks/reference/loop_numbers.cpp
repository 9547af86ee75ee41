#include "checks/reference/loop_numbers.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace attn {

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* first = dense.const_data_ptr<double>();
  return std::vector<double>(first, first + dense.numel());
}

std::vector<bool> flags_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kCPU).contiguous();
  const bool* first = dense.const_data_ptr<bool>();
  return std::vector<bool>(first, first + dense.numel());
}

at::Tensor tensor_of(const std::vector<double>& numbers, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kDouble);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<double>());
  return tensor.view(sizes);
}

}  // namespace attn
