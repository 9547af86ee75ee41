#include "trace/attention_maps.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <numeric>
#include <set>
#include <utility>

#include "attention/multi_head_attention.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/experiment.h"
#include "experiment/torch_guard.h"

namespace attn {
namespace {

constexpr std::int64_t kHeadAxis = 1;

/// The chosen numbers in order, each once; all of 0 ... count - 1 when none is chosen.
std::vector<std::int64_t> chosen_indices(const RunConfig& config, const std::string& what,
                                         const std::vector<std::int64_t>& chosen, std::int64_t count) {
  if (chosen.empty()) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  for (const std::int64_t index : chosen) {
    if (0 <= index && index < count) continue;
    throw ConfigError(config.source_name + ": " + what + " " + std::to_string(index) + " is not there, expected 0 to " +
                      std::to_string(count - 1));
  }
  const std::set<std::int64_t> sorted(chosen.begin(), chosen.end());
  return {sorted.begin(), sorted.end()};
}

Matrix to_matrix(const at::Tensor& map) {
  const at::Tensor numbers = map.to(at::kCPU, at::kDouble).contiguous();  // (T_q, T_k)
  const double* first = numbers.const_data_ptr<double>();
  return {numbers.size(0), numbers.size(1), std::vector<double>(first, first + numbers.numel())};
}

/// Keeps the chosen heads of one step as numbers, and no tensor.
class MapCollector : public AttentionObserver {
 public:
  MapCollector(Step step, std::vector<std::int64_t> batches, std::vector<std::int64_t> heads)
      : step_(step), batches_(std::move(batches)), heads_(std::move(heads)) {}

  void on_step(Step step, const at::Tensor& value) override {
    if (step != step_) return;
    const at::Tensor by_head = value.dim() == 3 ? value.unsqueeze(kHeadAxis) : value;  // (B, H, T_q, T_k)
    for (const std::int64_t batch : batches_) {
      for (const std::int64_t head : heads_) maps_.push_back({batch, head, to_matrix(by_head[batch][head])});
    }
  }

  std::vector<AttentionMap> take_maps() { return std::exchange(maps_, {}); }

 private:
  Step step_;
  std::vector<std::int64_t> batches_;
  std::vector<std::int64_t> heads_;
  std::vector<AttentionMap> maps_;
};

/// The layer's declared mask, row by row.
std::vector<bool> visible_keys(const MultiHeadAttentionImpl& layer, std::int64_t length) {
  std::vector<bool> visible(static_cast<std::size_t>(length * length), true);
  const std::optional<at::Tensor> mask = layer.mask(length);
  if (!mask.has_value()) return visible;
  const at::Tensor rows = mask->to(at::kCPU).contiguous();
  const bool* first = rows.const_data_ptr<bool>();
  visible.assign(first, first + rows.numel());
  return visible;
}

}  // namespace

bool is_attention_map(Step step) { return Step::kScores <= step && step <= Step::kDroppedWeights; }

std::vector<std::string> map_step_names() {
  std::vector<std::string> names;
  for (const std::string_view name : kStepNames) {
    if (is_attention_map(*find_step(name))) names.emplace_back(name);
  }
  return names;
}

AttentionMaps capture_attention_maps(const RunConfig& config, Step step, const MapSelection& selection) {
  if (!is_attention_map(step)) {
    throw ConfigError(config.source_name + ": step " + in_quotes(step_name(step)) +
                      " is no (B, H, T, T) map; known: " + join(map_step_names()));
  }
  MapCollector collector(step, chosen_indices(config, "batch", selection.batches, config.B),
                         chosen_indices(config, "head", selection.heads, config.attention.H));
  AttentionMaps result;
  result.config = config;
  result.step = step;
  with_torch_guarded(config, [&] {
    const at::NoGradGuard no_grad;
    Experiment experiment = make_experiment(config);
    experiment.layer->train(config.mode == Mode::kTrain);
    experiment.layer->forward(AttentionInput{experiment.x}, &collector);
    result.visible = visible_keys(*experiment.layer, config.T);
    result.torch_version = torch_version();
    result.threads = at::get_num_threads();
    result.token_labels = std::move(experiment.token_labels);
    result.notes = std::move(experiment.notes);
  });
  result.maps = collector.take_maps();
  return result;
}

}  // namespace attn
