// Our own layer as a subject. A planted fault is this with another factory: one that makes a layer with a faulty core,
// or a faulty subclass of the layer.
#pragma once

#include <functional>
#include <memory>

#include "checks/subject.h"

namespace attn {

class KeyValueCache;
class MultiHeadAttentionImpl;

/// Makes the layer of a config, always the same one, in eval mode: make_layer() for the honest layer.
using LayerFactory = std::function<std::shared_ptr<MultiHeadAttentionImpl>(const RunConfig&)>;

class LayerSubject : public Subject {
 public:
  /// `layer` absent: the factory makes it.
  LayerSubject(RunConfig run, LayerFactory factory, std::shared_ptr<MultiHeadAttentionImpl> layer = nullptr);
  ~LayerSubject() override;

  const AttentionConfig& config() const override { return run_.attention; }
  at::Tensor forward(const AttentionInput& input) override;
  std::optional<CapturedSteps> forward_with_steps(const AttentionInput& input) override;
  std::optional<std::vector<DecodedPiece>> forward_in_pieces(const AttentionInput& input,
                                                             const std::vector<std::int64_t>& lengths) override;
  std::optional<CapturedSteps> attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const std::optional<at::Tensor>& mask, const at::Tensor& real_keys) override;
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() override;
  void train(bool on) override;
  std::unique_ptr<Subject> without_masks() override;
  std::unique_ptr<Subject> with_dropout(double dropout) override;
  std::unique_ptr<Subject> rebuild(Dtype dtype) override;

 private:
  RunConfig run_;
  LayerFactory factory_;
  std::shared_ptr<MultiHeadAttentionImpl> layer_;
  std::unique_ptr<KeyValueCache> cache_;  ///< made when first needed.
};

}  // namespace attn
