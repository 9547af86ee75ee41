// The numbers of one entry of a .safetensors file as float64. No LibTorch.
#pragma once

#include <string_view>
#include <vector>

#include "files/safetensors.h"

namespace attn {

/// The distance from 1 to the next number of this dtype. 0 for dtypes of whole numbers, whose
/// arithmetic is exact.
double epsilon_of(std::string_view dtype);

/// Whether numbers_of() can read it.
bool holds_numbers(std::string_view dtype);

/// All numbers in row-major order. int64 beyond 2^53 is rounded. The dtype must hold numbers.
std::vector<double> numbers_of(const SafetensorsEntry& entry);

}  // namespace attn
