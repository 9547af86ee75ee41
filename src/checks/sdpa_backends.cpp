#include "checks/sdpa_backends.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>

namespace attn {
namespace {

/// Allows LibTorch one backend beside math, and puts its global switches back afterwards.
class OnlyBackend {
 public:
  explicit OnlyBackend(at::SDPBackend backend)
      : math_(context().userEnabledMathSDP()),
        flash_(context().userEnabledFlashSDP()),
        efficient_(context().userEnabledMemEfficientSDP()),
        cudnn_(context().userEnabledCuDNNSDP()) {
    allow(true, backend == at::SDPBackend::flash_attention, backend == at::SDPBackend::efficient_attention,
          backend == at::SDPBackend::cudnn_attention);
  }
  ~OnlyBackend() { allow(math_, flash_, efficient_, cudnn_); }
  OnlyBackend(const OnlyBackend&) = delete;
  OnlyBackend& operator=(const OnlyBackend&) = delete;

 private:
  static at::Context& context() { return at::globalContext(); }
  static void allow(bool math, bool flash, bool efficient, bool cudnn) {
    context().setSDPUseMath(math);
    context().setSDPUseFlash(flash);
    context().setSDPUseMemEfficient(efficient);
    context().setSDPUseCuDNN(cudnn);
  }
  bool math_, flash_, efficient_, cudnn_;
};

/// The same numbers, with the head axis and the token axis swapped in memory, as a split into heads leaves them.
at::Tensor strided(const at::Tensor& heads) { return heads.transpose(1, 2).contiguous().transpose(1, 2); }

}  // namespace

const std::vector<SdpaBackend>& sdpa_backends() {
  static const std::vector<SdpaBackend> backends{{at::SDPBackend::math, "math"},
                                                 {at::SDPBackend::flash_attention, "flash"},
                                                 {at::SDPBackend::efficient_attention, "efficient"},
                                                 {at::SDPBackend::cudnn_attention, "cudnn"}};
  return backends;
}

std::optional<CoreOutput> library_core(const CoreInput& input, const SdpaBackend& backend, bool with_strides) {
  const OnlyBackend only(backend.value);
  const bool backward = input.d_context.defined();
  const at::AutoGradMode gradients(backward);
  const auto leaf = [&](const at::Tensor& tensor) {
    const at::Tensor copy = with_strides ? strided(tensor.detach()) : tensor.detach().contiguous();
    return copy.detach().requires_grad_(backward);
  };
  const at::Tensor q = leaf(input.q), k = leaf(input.k), v = leaf(input.v);
  const std::optional<at::Tensor> mask = library_mask(q, k, input.rules, input.mask);
  const double scale = input.rules.scale;
  const bool grouped = k.size(1) != q.size(1);
  const auto chosen = static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(q, k, v, mask, /*dropout_p=*/0.0, /*is_causal=*/false, scale, grouped));
  if (chosen != backend.value) return std::nullopt;
  const at::Tensor output =
      at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, /*is_causal=*/false, scale, grouped);
  if (!backward) return CoreOutput{output, {}, {}, {}};
  const at::Tensor d_context = with_strides ? strided(input.d_context) : input.d_context.contiguous();
  const auto found = torch::autograd::grad({output}, {q, k, v}, {d_context});
  return CoreOutput{output.detach(), found[0], found[1], found[2]};
}

}  // namespace attn
