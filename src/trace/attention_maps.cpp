#include "trace/attention_maps.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "attention/multi_head_attention.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/experiment.h"
#include "experiment/torch_guard.h"
#include "trace/forward_calls.h"

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

/// Puts the chosen heads of one step together as numbers, call by call, and keeps no tensor.
class MapCollector : public AttentionObserver {
 public:
  MapCollector(const RunConfig& config, Step step, const MapSelection& selection)
      : step_(step), rows_(config.T), cols_(key_length(config)) {
    for (const std::int64_t batch : chosen_indices(config, "batch", selection.batches, config.B)) {
      for (const std::int64_t head : chosen_indices(config, "head", selection.heads, config.attention.H)) {
        maps_.push_back({batch, head, {rows_, cols_, std::vector<double>(static_cast<std::size_t>(rows_ * cols_))}});
      }
    }
    computed_.assign(static_cast<std::size_t>(rows_ * cols_), false);
  }

  void begin_call(const ForwardCall& call) { call_ = call; }

  void on_step(Step step, const at::Tensor& value) override {
    if (step != step_) return;
    is_there_ = true;
    const at::Tensor by_head = value.dim() == 3 ? value.unsqueeze(kHeadAxis) : value;  // (B, H, T_q, T_k)
    for (AttentionMap& map : maps_) fill(map.values, by_head[map.batch][map.head]);
    for (std::int64_t row = 0; row < call_.queries; ++row) {
      for (std::int64_t col = 0; col < call_.keys; ++col) computed_[cell(row, col)] = true;
    }
  }

  bool is_there() const { return is_there_; }
  /// By row: which cells a call has computed.
  const std::vector<bool>& computed() const { return computed_; }
  std::vector<AttentionMap> take_maps() { return std::exchange(maps_, {}); }

 private:
  /// Where a call's cell stands among those of the whole sequence.
  std::size_t cell(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>((call_.first_query + row) * cols_ + call_.first_key + col);
  }

  void fill(Matrix& whole, const at::Tensor& map) const {
    const at::Tensor numbers = map.to(at::kCPU, at::kDouble).contiguous();  // (T_q, T_k)
    const double* number = numbers.const_data_ptr<double>();
    for (std::int64_t row = 0; row < call_.queries; ++row) {
      for (std::int64_t col = 0; col < call_.keys; ++col) whole.values[cell(row, col)] = *number++;
    }
  }

  Step step_;
  std::int64_t rows_, cols_;
  ForwardCall call_;
  bool is_there_ = false;
  std::vector<AttentionMap> maps_;
  std::vector<bool> computed_;
};

/// The layer's declared mask of the whole sequence: B tables of T_q * T_k, or one that holds for all; none where
/// nothing is hidden.
std::vector<std::vector<bool>> declared_masks(const Experiment& experiment) {
  const RunConfig& config = experiment.config;
  const std::optional<at::Tensor> mask = experiment.layer->mask({config.T, key_length(config)}, experiment.real_keys);
  std::vector<std::vector<bool>> items;
  if (!mask.has_value()) return items;
  const at::Tensor cells = mask->to(at::kCPU).contiguous().view({-1, config.T * key_length(config)});
  for (std::int64_t b = 0; b < cells.size(0); ++b) {
    const bool* first = cells.const_data_ptr<bool>() + b * cells.size(1);
    items.emplace_back(first, first + cells.size(1));
  }
  return items;
}

/// See AttentionMaps::visible.
std::vector<std::vector<bool>> visible_cells(const Experiment& experiment, Step step,
                                             const std::vector<bool>& computed) {
  const RunConfig& config = experiment.config;
  const std::vector<std::vector<bool>> masks =
      is_after_mask(step) ? declared_masks(experiment) : std::vector<std::vector<bool>>{};
  std::vector<std::vector<bool>> items(static_cast<std::size_t>(config.B), computed);
  for (std::int64_t b = 0; b < config.B; ++b) {
    std::vector<bool>& visible = items[static_cast<std::size_t>(b)];
    const std::vector<bool>* mask =
        masks.empty() ? nullptr : &masks[masks.size() == 1 ? 0 : static_cast<std::size_t>(b)];
    std::size_t cell = 0;
    for (std::int64_t i = 0; i < config.T; ++i) {
      const bool is_token = config.memory_length.has_value() || is_real_key(config, b, i);
      for (std::int64_t j = 0; j < key_length(config); ++j, ++cell) {
        const bool shown = is_token && is_real_key(config, b, j) && (mask == nullptr || (*mask)[cell]);
        visible[cell] = visible[cell] && shown;
      }
    }
  }
  return items;
}

/// Why a layer does not announce a step that is a map.
std::string missing_feature(Step step) {
  if (step == Step::kCappedScores) return "softcap";
  if (step == Step::kBiasedScores) return "alibi";
  throw std::logic_error("a map that no layer announces");
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

bool is_after_mask(Step step) { return step >= Step::kMaskedScores; }

AttentionMaps capture_attention_maps(const RunConfig& config, Step step, const MapSelection& selection) {
  if (!is_attention_map(step)) {
    throw ConfigError(config.source_name + ": step " + in_quotes(step_name(step)) +
                      " is no (B, H, T, T) map; known: " + join(map_step_names()));
  }
  if (config.attention.engine == Engine::kSdpa) {
    throw ConfigError(config.source_name + ": engine: sdpa computes no " + std::string(step_name(step)) +
                      " that could be drawn, use explicit (--set engine=explicit)");
  }
  MapCollector collector(config, step, selection);
  AttentionMaps result;
  result.config = config;
  result.step = step;
  with_torch_guarded(config, [&] {
    const at::NoGradGuard no_grad;
    Experiment experiment = make_experiment(config);
    experiment.layer->train(config.mode == Mode::kTrain);
    run_forward_calls(experiment, experiment.x, collector,
                      [&](const ForwardCall& call) { collector.begin_call(call); });
    result.visible = visible_cells(experiment, step, collector.computed());
    result.torch_version = torch_version();
    result.threads = at::get_num_threads();
    result.token_labels = std::move(experiment.token_labels);
    result.notes = std::move(experiment.notes);
  });
  if (!collector.is_there()) {
    throw ConfigError(config.source_name + ": step " + in_quotes(step_name(step)) + " is not there: the layer has no " +
                      missing_feature(step));
  }
  result.maps = collector.take_maps();
  return result;
}

}  // namespace attn
