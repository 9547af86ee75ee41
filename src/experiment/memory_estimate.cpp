#include "experiment/memory_estimate.h"

#include <fstream>
#include <initializer_list>
#include <limits>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

using Bytes = std::uint64_t;

constexpr Bytes kMaxBytes = std::numeric_limits<Bytes>::max();

Bytes add(Bytes a, Bytes b) { return b > kMaxBytes - a ? kMaxBytes : a + b; }

Bytes product(std::initializer_list<std::int64_t> factors) {
  Bytes result = 1;
  for (const std::int64_t factor : factors) {
    const Bytes wide = static_cast<Bytes>(factor);
    if (wide != 0 && result > kMaxBytes / wide) return kMaxBytes;
    result *= wide;
  }
  return result;
}

Bytes times(Bytes count, Bytes bytes) { return bytes != 0 && count > kMaxBytes / bytes ? kMaxBytes : count * bytes; }

/// How many tensors of one size are alive at the peak of a run.
struct LiveTensors {
  Bytes attention;         ///< (B, H, T, T) in the config's dtype.
  Bytes attention_double;  ///< (B, H, T, T) in float64, for statistics, pictures or the reference.
  Bytes tokens;            ///< (B, T, d_model)-like, in the config's dtype.
  Bytes tokens_double;
  Bytes parameters;  ///< copies of all parameters in the config's dtype: themselves, gradients.
  Bytes parameters_double;
};

LiveTensors live_tensors(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTrace:
      return {8, 2, 24, 2, 2, 1};
    case Purpose::kSavedTrace:
      // As a trace; and every step, parameter and gradient twice more: as bytes, and in the file's.
      return {8 + 2 * 10, 2, 24 + 2 * 26, 2, 2 + 2 * 2, 1};
    case Purpose::kVerify:
      return {16, 12, 48, 48, 3, 3};
    case Purpose::kHeatmap:
      return {6, 2, 12, 1, 1, 1};
  }
  return {};
}

/// What a run takes whatever its size: the checks' own batches of changed inputs, and what they are compared with.
Bytes workspace(Purpose purpose) { return purpose == Purpose::kVerify ? Bytes{64} << 20 : 0; }

std::optional<Bytes> read_bytes(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  const std::optional<std::int64_t> value = parse_int64(word);  // absent for "max"
  if (!value.has_value() || *value < 0) return std::nullopt;
  return static_cast<Bytes>(*value);
}

/// MemAvailable of /proc/meminfo, in bytes.
std::optional<Bytes> machine_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::string rest;
  while (file >> key) {
    std::int64_t kibibytes = 0;
    if (key == "MemAvailable:" && file >> kibibytes) return static_cast<Bytes>(kibibytes) * 1024;
    std::getline(file, rest);
  }
  return std::nullopt;
}

/// What the control group (version 2, else 1) still allows.
std::optional<Bytes> control_group_available() {
  const std::string v2 = "/sys/fs/cgroup/";
  const std::string v1 = "/sys/fs/cgroup/memory/";
  std::string own_group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::/", 0) == 0) own_group = line.substr(4);
  }
  for (const std::string& folder : {v2 + own_group + "/", v2}) {
    const std::optional<Bytes> limit = read_bytes(folder + "memory.max");
    const std::optional<Bytes> used = read_bytes(folder + "memory.current");
    if (limit && used) return *limit > *used ? *limit - *used : 0;
  }
  const std::optional<Bytes> limit = read_bytes(v1 + "memory.limit_in_bytes");
  const std::optional<Bytes> used = read_bytes(v1 + "memory.usage_in_bytes");
  if (limit && used) return *limit > *used ? *limit - *used : 0;
  return std::nullopt;
}

}  // namespace

MemoryEstimate estimate_memory(const RunConfig& config, Purpose purpose) {
  const AttentionConfig& layer = config.attention;
  const std::int64_t element = element_size(config.dtype);
  const std::int64_t widest = std::max(layer.d_model, layer.heads_width());
  const Bytes attention_numbers = product({config.B, layer.H, config.T, config.T});
  const Bytes token_numbers = product({config.B, config.T, widest});
  Bytes parameter_numbers = product({4, layer.d_model, layer.heads_width()});
  if (config.embedding.has_value()) {
    const std::int64_t rows = config.embedding->vocab_size + layer.max_seq_len;
    parameter_numbers = add(parameter_numbers, product({rows, layer.d_model}));
  }

  MemoryEstimate estimate;
  estimate.attention_bytes = times(attention_numbers, static_cast<Bytes>(element));
  if (layer.causal) estimate.mask_bytes = product({layer.max_seq_len, layer.max_seq_len});

  const LiveTensors live = live_tensors(purpose);
  const auto total = [element](Bytes numbers, Bytes in_dtype, Bytes in_double) {
    return times(numbers, in_dtype * static_cast<Bytes>(element) + in_double * 8);
  };
  estimate.bytes = add(total(attention_numbers, live.attention, live.attention_double),
                       total(token_numbers, live.tokens, live.tokens_double));
  estimate.bytes = add(estimate.bytes, total(parameter_numbers, live.parameters, live.parameters_double));
  estimate.bytes = add(estimate.bytes, times(2, estimate.mask_bytes));  // the buffer, and the ones it is made of
  estimate.bytes = add(estimate.bytes, workspace(purpose));
  return estimate;
}

std::optional<std::uint64_t> available_memory() {
  const std::optional<Bytes> machine = machine_available();
  const std::optional<Bytes> group = control_group_available();
  if (machine && group) return std::min(*machine, *group);
  return machine ? machine : group;
}

void refuse_if_too_large(const RunConfig& config, Purpose purpose, std::optional<std::uint64_t> max_memory) {
  std::string limit_name = "--max-memory";
  if (!max_memory.has_value()) {
    const std::optional<Bytes> available = available_memory();
    if (!available.has_value()) return;
    max_memory = *available / 10 * 8;
    limit_name = "80 % of the available memory; --max-memory overrides it";
  }
  const MemoryEstimate estimate = estimate_memory(config, purpose);
  if (estimate.bytes <= *max_memory) return;
  throw ResourceError(config.source_name + ": B " + std::to_string(config.B) + ", H " +
                      std::to_string(config.attention.H) + ", T " + std::to_string(config.T) + " need about " +
                      format_bytes(estimate.bytes) + " (" + format_bytes(estimate.attention_bytes) +
                      " for each (B, H, T, T) tensor, " + format_bytes(estimate.mask_bytes) +
                      " for the causal mask of max_seq_len " + std::to_string(config.attention.max_seq_len) +
                      "), more than the limit of " + format_bytes(*max_memory) + " (" + limit_name + ")");
}

}  // namespace attn
