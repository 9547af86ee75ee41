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

/// What is filled from a file: every parameter of a layer, and of its embedding if there is one.
struct ParameterTargets {
  const torch::nn::Module* layer;
  const torch::nn::Module* embedding;  ///< may be null; its parameters may be missing from the file together.
};

/// Fills the parameters of both by name. Entries that are inputs or recordings (x, expected.*, forward.*, backward.*,
/// gradient.*) are passed over, and so, with a note, are an embedding's where there is none to fill.
/// 2-D weights of the layer may be stored [in, out] (stored_layout.h). Throws ConfigError naming all that is missing,
/// left over or misshapen.
void load_parameters(const SafetensorsFile& file, const ParameterTargets& targets, const RunConfig& config,
                     std::vector<std::string>& notes);

}  // namespace attn
