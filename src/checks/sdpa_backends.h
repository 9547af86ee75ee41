// LibTorch's scaled_dot_product_attention, one backend at a time: what sdpa-forward and sdpa-backward compare with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/SDPBackend.h>

#include "checks/reference/plain_attention.h"

namespace attn {

struct SdpaBackend {
  at::SDPBackend value;
  std::string name;  ///< "flash"
};

/// In the order in which they are tried.
const std::vector<SdpaBackend>& sdpa_backends();

/// scaled_dot_product_attention of the input by this backend alone, with the explicit mask and no flag; absent when
/// this LibTorch does not offer it here. `with_strides`: the inputs lie in memory as a split into heads leaves them.
/// The rules must have no softcap and the input no sinks.
std::optional<CoreOutput> library_core(const CoreInput& input, const SdpaBackend& backend, bool with_strides);

}  // namespace attn
