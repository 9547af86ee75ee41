#include "experiment/memory_estimate.h"

#include <algorithm>
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

/// Whether the layer itself makes (B, H, T, T) tensors. The engine sdpa makes none, but drops weights in its `math`
/// backend, which does.
bool has_maps(const RunConfig& config) {
  const bool drops = config.mode == Mode::kTrain && config.attention.dropout > 0.0;
  return config.attention.engine != Engine::kSdpa || drops;
}

/// How many tensors of one size are alive at the peak of a run.
struct LiveTensors {
  Bytes attention;         ///< (B, H, T, T) in the config's dtype.
  Bytes attention_double;  ///< (B, H, T, T) in float64, for statistics, pictures or the reference.
  Bytes tokens;            ///< (B, T, d_model)-like, in the config's dtype.
  Bytes tokens_double;
  Bytes parameters;  ///< copies of all parameters in the config's dtype: themselves, gradients.
  Bytes parameters_double;
};

LiveTensors live_tensors(const RunConfig& config, Purpose purpose) {
  switch (purpose) {
    case Purpose::kTrace:
      if (!has_maps(config)) return {3, 0, 24, 2, 2, 1};
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

/// What a feature adds to the tensors that are alive, forward and backward, in a trace. Half precision is widened to
/// float32 inside norms and rotations.
LiveTensors more_tensors(const RunConfig& config, Purpose purpose) {
  const AttentionConfig& layer = config.attention;
  Bytes attention = 0;  // (B, H, T_q, T_k)
  Bytes tokens = 0;     // (B, T, d_model)
  Bytes steps = 0;      // announced ones of each kind: a saved trace keeps them
  Bytes token_steps = 0;
  if (layer.softcap) attention += 4, steps += 1;
  if (layer.alibi) attention += 3, steps += 1;
  if (layer.sink) attention += 4;
  if (layer.qk_norm) tokens += 12, token_steps += 2;
  if (layer.rope) tokens += 16, token_steps += 2;
  if (layer.H_kv() != layer.H) attention += layer.sink ? 1 : 0, tokens += 4;
  if (config.memory_length) tokens += 4, token_steps += 1;
  if (config.cache) tokens += 8;
  if (element_size(config.dtype) < 4) tokens *= 2;
  if (purpose == Purpose::kVerify) attention *= 2, tokens *= 2;
  if (purpose == Purpose::kSavedTrace) attention += 4 * steps, tokens += 4 * token_steps;
  return {attention, 0, tokens, 0, 0, 0};
}

/// The largest forward call: of all with a cache, whose tensors are let go before the next begins.
struct CallSize {
  std::int64_t queries = 0, keys = 0;
};

CallSize largest_call(const RunConfig& config) {
  if (!config.cache) return {config.T, key_length(config)};
  const CallSize prefill{config.cache->prefill, config.cache->prefill};
  const CallSize last{config.cache->chunk, config.T};
  return prefill.queries * prefill.keys >= last.queries * last.keys ? prefill : last;
}

/// What all calls of a cached run keep for a file: maps, and the keys and values of every call again.
Bytes kept_of_calls(const RunConfig& config, Bytes map_steps) {
  const CacheConfig& cache = config.cache.value();
  const AttentionConfig& layer = config.attention;
  const Bytes calls = 1 + static_cast<Bytes>(cache.steps);
  const Bytes maps = add(product({config.B, layer.H, cache.prefill, cache.prefill}),
                         product({config.B, layer.H, cache.steps, cache.chunk, config.T}));
  const Bytes keys = times(calls, product({config.B, layer.H_kv(), config.T, layer.d_k()}));
  return times(2, add(times(map_steps, maps), times(2, keys)));
}

/// The masks of a call while it is built, negated and applied: booleans, and whole positions for a window or an own
/// mask. Another for each item with padding.
Bytes mask_workspace(const RunConfig& config, const CallSize& call) {
  const AttentionConfig& layer = config.attention;
  const Bytes cells = product({call.queries, call.keys});
  Bytes bytes = times(2, cells);
  if (layer.window || layer.mask) bytes = add(bytes, times(4 + 3 * 8, cells));
  if (config.padding) bytes = add(bytes, times(6, times(static_cast<Bytes>(config.B), cells)));
  return bytes;
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
  // verify takes the whole sequence at once for most of its checks.
  const CallSize call = purpose == Purpose::kVerify ? CallSize{config.T, key_length(config)} : largest_call(config);
  const Bytes attention_numbers = product({config.B, layer.H, call.queries, call.keys});
  const Bytes picture_numbers = product({config.B, layer.H, config.T, key_length(config)});
  const Bytes token_numbers = product({config.B, std::max(config.T, key_length(config)), widest});
  Bytes parameter_numbers = add(product({4, layer.d_model, layer.heads_width()}), product({2, layer.H + layer.d_k()}));
  if (config.embedding.has_value()) {
    const std::int64_t rows = config.embedding->vocab_size + layer.max_seq_len;
    parameter_numbers = add(parameter_numbers, product({rows, layer.d_model}));
  }

  MemoryEstimate estimate;
  estimate.attention_bytes = times(attention_numbers, static_cast<Bytes>(element));
  if (layer.causal) estimate.mask_bytes = product({layer.max_seq_len, layer.max_seq_len});

  const LiveTensors live = live_tensors(config, purpose);
  const LiveTensors more = more_tensors(config, purpose);
  const auto total = [element](Bytes numbers, Bytes in_dtype, Bytes in_double) {
    return times(numbers, in_dtype * static_cast<Bytes>(element) + in_double * 8);
  };
  // In pictures the calls are put together, in float64.
  const Bytes double_numbers = purpose == Purpose::kHeatmap ? picture_numbers : attention_numbers;
  for (const Bytes part :
       {total(attention_numbers, live.attention + more.attention, 0), total(double_numbers, 0, live.attention_double),
        total(token_numbers, live.tokens + more.tokens, live.tokens_double),
        total(parameter_numbers, live.parameters, live.parameters_double),
        times(2, estimate.mask_bytes),  // the buffer, and the ones it is made of
        times(purpose == Purpose::kVerify ? 3 : 1, mask_workspace(config, call)), workspace(purpose)}) {
    estimate.bytes = add(estimate.bytes, part);
  }
  if (purpose == Purpose::kSavedTrace && config.cache) {
    const Bytes map_steps = Bytes{5} + (layer.softcap ? 1 : 0) + (layer.alibi ? 1 : 0);
    estimate.bytes = add(estimate.bytes, times(kept_of_calls(config, map_steps), static_cast<Bytes>(element)));
  }
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
  const std::string T = std::to_string(config.T);
  const std::string lengths =
      config.memory_length ? ", T_q " + T + ", T_k " + std::to_string(*config.memory_length) : ", T " + T;
  const bool two_lengths = config.memory_length || config.cache;
  const std::string map_shape = two_lengths ? "(B, H, T_q, T_k)" : "(B, H, T, T)";
  const bool is_trace = purpose == Purpose::kTrace || purpose == Purpose::kSavedTrace;
  const std::string maker =
      is_trace && !has_maps(config) ? " that scaled_dot_product_attention may make inside" : std::string();
  throw ResourceError(config.source_name + ": B " + std::to_string(config.B) + ", H " +
                      std::to_string(config.attention.H) + lengths + " need about " + format_bytes(estimate.bytes) +
                      " (" + format_bytes(estimate.attention_bytes) + " for each " + map_shape + " tensor" + maker +
                      ", " + format_bytes(estimate.mask_bytes) + " for the causal mask of max_seq_len " +
                      std::to_string(config.attention.max_seq_len) + "), more than the limit of " +
                      format_bytes(*max_memory) + " (" + limit_name + ")");
}

}  // namespace attn
