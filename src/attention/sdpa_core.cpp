#include "attention/sdpa_core.h"

#include <ATen/ATen.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include <limits>
#include <utility>

#include "core/error.h"

namespace attn {
namespace {

constexpr std::int64_t kHeadAxis = 1;

/// What LibTorch's function takes: four axes, and one mask.
struct SdpaCall {
  at::Tensor q, k, v;  ///< (B, H, T_q, d_k), (B, H_kv, T_k, d_k)
  std::optional<at::Tensor> mask;
  bool grouped = false;
  bool single_head = false;
};

/// A bias must be added, so there the mask becomes numbers: the bias where a query may look, -inf elsewhere.
std::optional<at::Tensor> one_mask(const AttentionCoreOptions& options) {
  if (!options.bias.has_value()) return options.mask;
  if (!options.mask.has_value()) return options.bias;
  return options.bias->masked_fill(options.mask->logical_not(), -std::numeric_limits<double>::infinity());
}

SdpaCall call_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionCoreOptions& options) {
  SdpaCall call{q, k, v, one_mask(options)};
  call.single_head = q.dim() == 3;
  if (call.single_head) {
    for (at::Tensor* tensor : {&call.q, &call.k, &call.v}) *tensor = tensor->unsqueeze(kHeadAxis);
    if (call.mask.has_value() && call.mask->dim() == 3) call.mask = call.mask->unsqueeze(kHeadAxis);
  }
  call.grouped = call.q.size(kHeadAxis) != call.k.size(kHeadAxis);
  return call;
}

}  // namespace

AttentionCoreOutput SdpaCore::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const AttentionCoreOptions& options, AttentionObserver* observer) const {
  check_core_input(q, k, v, options);
  if (options.softcap.has_value() || options.sink.has_value()) {
    throw ShapeError("engine sdpa: scaled_dot_product_attention has no softcap and no sink");
  }
  const SdpaCall call = call_of(q, k, v, options);
  const at::Tensor context = at::scaled_dot_product_attention(call.q, call.k, call.v, call.mask, options.dropout,
                                                              /*is_causal=*/false, options.scale, call.grouped);
  return {announce(observer, Step::kContext, call.single_head ? context.squeeze(kHeadAxis) : context), std::nullopt};
}

std::string sdpa_backend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const AttentionCoreOptions& options) {
  const SdpaCall call = call_of(q, k, v, options);
  const std::int64_t choice = at::_fused_sdp_choice(call.q, call.k, call.v, call.mask, options.dropout,
                                                    /*is_causal=*/false, options.scale, call.grouped);
  switch (static_cast<at::SDPBackend>(choice)) {
    case at::SDPBackend::math:
      return "math";
    case at::SDPBackend::flash_attention:
      return "flash";
    case at::SDPBackend::efficient_attention:
      return "efficient";
    case at::SDPBackend::cudnn_attention:
      return "cudnn";
    default:
      return "backend " + std::to_string(choice);
  }
}

}  // namespace attn
