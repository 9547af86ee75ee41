#include "checks/layer_subject.h"

#include <utility>

#include "attention/multi_head_attention.h"

namespace attn {
namespace {

constexpr std::int64_t kHeadAxis = 1;

/// Steps whose shape has an H axis in a multi-head layer.
bool has_head_axis(Step step) { return Step::kQ <= step && step <= Step::kContext; }

class StepCollector : public AttentionObserver {
 public:
  explicit StepCollector(bool single_head) : single_head_(single_head) {}

  void on_step(Step step, const at::Tensor& value) override {
    steps_.announced.emplace_back(step, value);
    steps_.values[step] = single_head_ && has_head_axis(step) ? value.unsqueeze(kHeadAxis) : value;
  }

  CapturedSteps finish(at::Tensor output) {
    steps_.output = std::move(output);
    return std::move(steps_);
  }

 private:
  bool single_head_;
  CapturedSteps steps_;
};

}  // namespace

LayerSubject::LayerSubject(RunConfig run, LayerFactory factory, std::shared_ptr<MultiHeadAttentionImpl> layer)
    : run_(std::move(run)), factory_(std::move(factory)), layer_(std::move(layer)) {
  if (layer_ == nullptr) layer_ = factory_(run_);
}

LayerSubject::~LayerSubject() = default;

at::Tensor LayerSubject::forward(const AttentionInput& input) { return layer_->forward(input).output; }

std::optional<CapturedSteps> LayerSubject::forward_with_steps(const AttentionInput& input) {
  StepCollector collector(config().module == ModuleKind::kSingleHead);
  at::Tensor output = layer_->forward(input, &collector).output;
  return collector.finish(std::move(output));
}

std::optional<std::vector<DecodedPiece>> LayerSubject::forward_in_pieces(const AttentionInput& input,
                                                                         const std::vector<std::int64_t>& lengths) {
  if (!config().causal || input.memory.defined()) return std::nullopt;
  if (cache_ == nullptr) cache_ = layer_->make_cache();
  cache_->reset();
  std::vector<DecodedPiece> pieces;
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    AttentionInput piece = tokens_of(input, first, length);
    piece.cache = cache_.get();
    const at::Tensor output = layer_->forward(piece).output;
    const std::int64_t keys = cache_->k().defined() ? cache_->k().size(-2) : 0;
    pieces.push_back({output, keys, cache_->bytes()});
    first += length;
  }
  return pieces;
}

std::optional<CapturedSteps> LayerSubject::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                  const std::optional<at::Tensor>& mask, const at::Tensor& real_keys) {
  const bool single_head = config().module == ModuleKind::kSingleHead;
  StepCollector collector(single_head);
  const auto own_shape = [&](const at::Tensor& heads) { return single_head ? heads.squeeze(kHeadAxis) : heads; };
  std::optional<at::Tensor> applied = mask;
  if (!mask.has_value()) {
    MaskPlace place{q.size(-2), k.size(-2)};
    if (config().causal) place = bottom_right(q.size(-2), k.size(-2));
    applied = layer_->mask(place, real_keys);
  } else if (mask->dim() == 4) {
    applied = own_shape(*mask);
  }
  at::Tensor context = layer_->attend(own_shape(q), own_shape(k), own_shape(v), applied, &collector).context;
  return collector.finish(single_head ? context.unsqueeze(kHeadAxis) : context);
}

std::vector<std::pair<std::string, at::Tensor>> LayerSubject::named_parameters() {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& item : layer_->named_parameters()) parameters.emplace_back(item.key(), item.value());
  return parameters;
}

void LayerSubject::train(bool on) { layer_->train(on); }

std::unique_ptr<Subject> LayerSubject::without_masks() {
  std::shared_ptr<MultiHeadAttentionImpl> layer = factory_(run_);
  layer->remove_masks();
  RunConfig run = run_;
  run.attention = run.attention.without_masks();
  return std::make_unique<LayerSubject>(std::move(run), factory_, std::move(layer));
}

std::unique_ptr<Subject> LayerSubject::with_dropout(double dropout) {
  RunConfig run = run_;
  run.attention.dropout = dropout;
  return std::make_unique<LayerSubject>(std::move(run), factory_);
}

std::unique_ptr<Subject> LayerSubject::rebuild(Dtype dtype) {
  RunConfig run = run_;
  run.dtype = dtype;
  return std::make_unique<LayerSubject>(std::move(run), factory_);
}

}  // namespace attn
