#include "experiment/tensor_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "experiment/experiment.h"

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

void load_parameters(const SafetensorsFile& file, const std::vector<ParameterTarget>& targets, Dtype dtype,
                     std::vector<std::string>& notes) {
  std::map<std::string, at::Tensor> parameters;
  Misfits misfits;
  for (const ParameterTarget& target : targets) {
    const auto named = target.module->named_parameters();
    const bool any_there =
        std::any_of(named.begin(), named.end(), [&file](const auto& item) { return file.find(item.key()) != nullptr; });
    if (target.optional && !any_there) continue;
    for (const auto& item : named) {
      if (file.find(item.key()) == nullptr) misfits.missing.push_back(item.key());
      parameters.emplace(item.key(), item.value());
    }
  }
  for (const SafetensorsEntry& entry : file.entries()) {
    const auto found = parameters.find(entry.name);
    if (found == parameters.end()) {
      if (!is_recording(entry.name)) misfits.left_over.push_back(entry.name);
    } else if (const std::vector<std::int64_t> expected = found->second.sizes().vec(); entry.shape != expected) {
      misfits.misshapen.push_back(entry.name + " is " + format_shape(entry.shape) + ", expected " +
                                  format_shape(expected));
    }
  }
  misfits.throw_if_any(file.source_name());

  for (auto& [name, parameter] : parameters) {
    parameter.set_data(to_tensor(*file.find(name), file.source_name(), dtype, notes).to(parameter.device()));
  }
}

}  // namespace attn
