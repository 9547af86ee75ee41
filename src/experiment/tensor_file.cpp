#include "experiment/tensor_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "config/saved_trace_names.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/experiment.h"
#include "experiment/stored_layout.h"

namespace attn {
namespace {

std::optional<at::ScalarType> real_type(const std::string& dtype) {
  if (dtype == "F16") return at::kHalf;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F32") return at::kFloat;
  if (dtype == "F64") return at::kDouble;
  return std::nullopt;
}

bool is_recording(const std::string& name) {
  if (name == "x") return true;
  for (const char* prefix : {"expected.", "forward.", "backward.", "gradient."}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

void add_once(std::vector<std::string>& notes, std::string note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

/// What stands between a file and the parameters it should fill, for one error line.
struct Misfits {
  std::vector<std::string> missing, left_over, misshapen;

  void throw_if_any(const std::string& source_name) const {
    std::vector<std::string> parts;
    if (!missing.empty()) parts.push_back("missing " + join(missing));
    if (!left_over.empty()) parts.push_back("left over " + join(left_over));
    parts.insert(parts.end(), misshapen.begin(), misshapen.end());
    if (!parts.empty()) throw ConfigError(source_name + ": does not fit the layer: " + join(parts, "; "));
  }
};

bool is_embedding(const std::string& name) {
  return name == "token_embedding.weight" || name == "position_embedding.weight";
}

/// The layer's 2-D weights that the file has. An embedding's tables are [rows, d_model] in every convention.
std::vector<StoredWeight> stored_weights(const SafetensorsFile& file, const torch::nn::Module& layer) {
  std::vector<StoredWeight> weights;
  for (const auto& item : layer.named_parameters()) {
    const SafetensorsEntry* entry = file.find(item.key());
    if (entry != nullptr && item.value().dim() == 2) {
      weights.push_back({item.key(), item.value().sizes().vec(), entry->shape});
    }
  }
  return weights;
}

bool is_among(const std::string& name, const std::vector<StoredWeight>& weights) {
  return std::any_of(weights.begin(), weights.end(), [&](const StoredWeight& weight) { return weight.name == name; });
}

bool is_transposed(const SafetensorsFile& file, const std::vector<StoredWeight>& weights, const RunConfig& config,
                   std::vector<std::string>& notes) {
  const auto format = file.metadata().find("format");
  const bool is_ours = format != file.metadata().end() && format->second == kSavedTraceFormat;
  StoredLayout layout = find_stored_layout(weights, config.weights_layout, is_ours, file.source_name());
  if (!layout.note.empty()) notes.push_back(std::move(layout.note));
  return layout.transposed;
}

std::vector<std::int64_t> reversed(const std::vector<std::int64_t>& shape) { return {shape.rbegin(), shape.rend()}; }

/// "q_proj.weight is (8, 4), expected (8, 8)", and what would help.
std::string misshapen(const SafetensorsEntry& entry, const std::vector<std::int64_t>& due, bool turned,
                      bool is_weight) {
  const std::vector<std::int64_t> expected = turned ? reversed(due) : due;
  std::string text = entry.name + " is " + format_shape(entry.shape) + ", expected " + format_shape(expected);
  if (turned) text += " as the weights are [in, out]";
  if (is_weight && entry.shape == reversed(expected)) {
    const std::string layout = to_string(turned ? WeightsLayout::kOutIn : WeightsLayout::kInOut);
    text += ", its transpose: set weights_layout to auto or " + layout;
  }
  return text;
}

}  // namespace

at::Tensor to_tensor(const SafetensorsEntry& entry, const std::string& source_name, Dtype dtype,
                     std::vector<std::string>& notes) {
  const std::string where = source_name + ": tensor " + in_quotes(entry.name);
  const std::optional<at::ScalarType> stored = real_type(entry.dtype);
  if (!stored.has_value()) {
    throw ConfigError(where + ": dtype " + entry.dtype + " cannot be used, expected F16, BF16, F32 or F64");
  }
  at::Tensor raw = at::empty(entry.shape, *stored);
  if (!entry.bytes.empty()) std::memcpy(raw.mutable_data_ptr(), entry.bytes.data(), entry.bytes.size());
  const at::ScalarType wanted = scalar_type(dtype);
  if (wanted == *stored) return raw;

  const at::Tensor converted = raw.to(wanted);
  if (!at::isfinite(converted).logical_or(at::isfinite(raw).logical_not()).all().item<bool>()) {
    throw ConfigError(where + ": holds numbers too large for dtype " + to_string(dtype));
  }
  add_once(notes, source_name + ": " + entry.dtype + " converted to " + to_string(dtype));
  return converted;
}

void load_parameters(const SafetensorsFile& file, const ParameterTargets& targets, const RunConfig& config,
                     std::vector<std::string>& notes) {
  std::map<std::string, at::Tensor> parameters;
  Misfits misfits;
  for (const torch::nn::Module* module : {targets.layer, targets.embedding}) {
    if (module == nullptr) continue;
    const auto named = module->named_parameters();
    const bool any_there =
        std::any_of(named.begin(), named.end(), [&file](const auto& item) { return file.find(item.key()) != nullptr; });
    if (module == targets.embedding && !any_there) continue;
    for (const auto& item : named) {
      if (file.find(item.key()) == nullptr) misfits.missing.push_back(item.key());
      parameters.emplace(item.key(), item.value());
    }
  }

  const std::vector<StoredWeight> weights = stored_weights(file, *targets.layer);
  const bool transposed = is_transposed(file, weights, config, notes);
  std::vector<std::string> unused;
  for (const SafetensorsEntry& entry : file.entries()) {
    const auto found = parameters.find(entry.name);
    if (found == parameters.end()) {
      if (is_recording(entry.name)) continue;
      const bool spare = targets.embedding == nullptr && is_embedding(entry.name);
      (spare ? unused : misfits.left_over).push_back(entry.name);
      continue;
    }
    const std::vector<std::int64_t> due = found->second.sizes().vec();
    const bool turned = transposed && is_among(entry.name, weights);
    if (entry.shape == (turned ? reversed(due) : due)) continue;
    misfits.misshapen.push_back(misshapen(entry, due, turned, is_among(entry.name, weights)));
  }
  misfits.throw_if_any(file.source_name());
  if (!unused.empty()) notes.push_back(file.source_name() + ": not used, as there is no embedding: " + join(unused));

  for (auto& [name, parameter] : parameters) {
    at::Tensor value = to_tensor(*file.find(name), file.source_name(), config.dtype, notes);
    if (transposed && is_among(name, weights)) value = value.t().contiguous();
    parameter.set_data(value.to(parameter.device()));
  }
}

}  // namespace attn
