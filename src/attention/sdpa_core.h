// The engine sdpa: LibTorch's scaled_dot_product_attention in place of the explicit steps. It has no weights to show.
#pragma once

#include <string>

#include "attention/attention_core.h"

namespace attn {

class SdpaCore : public AttentionCore {
 public:
  /// As AttentionCore::attend(), without weights; nothing but the context is announced. The mask is always given as a
  /// tensor, never as `is_causal`, which LibTorch aligns to the top left where T_q != T_k.
  /// Throws ShapeError for a softcap or a sink, which the function has not.
  AttentionCoreOutput attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionCoreOptions& options, AttentionObserver* observer = nullptr) const override;
};

/// "flash", "math", "efficient", "cudnn": the backend that LibTorch chooses for this call.
std::string sdpa_backend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const AttentionCoreOptions& options);

}  // namespace attn
