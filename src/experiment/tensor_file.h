// Tensors and parameters from a .safetensors file, as LibTorch tensors. Private to `experiment` and its tests.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/run_config.h"
#include "files/safetensors.h"

namespace torch::nn {
class Module;
}

namespace attn {

/// One entry as a CPU tensor of the wanted dtype. A conversion is told in `notes`, once a file and pair of dtypes.
/// Throws ConfigError for a dtype that holds no real numbers, or a finite number that the wanted dtype cannot hold.
at::Tensor to_tensor(const SafetensorsEntry& entry, const std::string& source_name, Dtype dtype,
                     std::vector<std::string>& notes);

/// What is filled from a file: every parameter of `module`.
struct ParameterTarget {
  const torch::nn::Module* module;
  bool optional;  ///< all of its parameters may be missing from the file together.
};

/// Fills the parameters of all targets by name. Entries that are inputs or recordings (x, expected.*, forward.*,
/// backward.*, gradient.*) are passed over. Throws ConfigError naming all that is missing, left over or misshapen.
void load_parameters(const SafetensorsFile& file, const std::vector<ParameterTarget>& targets, Dtype dtype,
                     std::vector<std::string>& notes);

}  // namespace attn
