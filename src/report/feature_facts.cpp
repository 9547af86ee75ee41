#include "report/feature_facts.h"

#include <algorithm>
#include <string_view>

#include "config/mask_words.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::int64_t kMostGroups = 4;  ///< listed one by one.

/// Of a config's number, which is seldom long: 100000, not 1e+05.
std::string given_number(double value) {
  constexpr int kDigits = 9;
  return format_number(value, kDigits);
}

std::string range_of(std::int64_t first, std::int64_t count) {
  const std::string start = std::to_string(first);
  return count == 1 ? start : start + "-" + std::to_string(first + count - 1);
}

/// "9 query heads share 3 key heads: key head 0 -> heads 0-2, 1 -> 3-5, 2 -> 6-8".
std::string group_words(const AttentionConfig& layer) {
  const std::int64_t size = layer.heads_a_group();
  std::vector<std::string> groups;
  for (std::int64_t group = 0; group < layer.H_kv(); ++group) {
    if (group == kMostGroups - 1 && layer.H_kv() > kMostGroups) {
      groups.emplace_back("...");
      group = layer.H_kv() - 1;
    }
    groups.push_back((group == 0 ? "key head 0 -> heads " : std::to_string(group) + " -> ") +
                     range_of(group * size, size));
  }
  const std::string keys = std::to_string(layer.H_kv());
  return std::to_string(layer.H) + " query heads share " + keys + (layer.H_kv() == 1 ? " key head: " : " key heads: ") +
         join(groups);
}

std::string scaling_words(const RopeScaling& scaling) {
  std::string words = ", scaling " + to_string(scaling.kind) + ": factor " + given_number(scaling.factor);
  if (scaling.kind == RopeScalingKind::kLlama3) {
    words += ", low_freq_factor " + given_number(scaling.low_freq_factor) + ", high_freq_factor " +
             given_number(scaling.high_freq_factor);
  }
  if (scaling.kind == RopeScalingKind::kYarn) {
    words += ", beta_fast " + given_number(scaling.beta_fast) + ", beta_slow " + given_number(scaling.beta_slow);
    if (scaling.attention_factor) words += ", attention_factor " + given_number(*scaling.attention_factor);
  }
  if (scaling.kind != RopeScalingKind::kLinear) {
    words += ", original_max_seq_len " + std::to_string(scaling.original_max_seq_len);
  }
  return words;
}

std::string rope_words(const RopeConfig& rope) {
  const char* pairs =
      rope.style == RopeStyle::kHalf ? "half (channel c with c + d_k/2)" : "adjacent (channels 2c, 2c+1)";
  return pairs + (", theta " + given_number(rope.theta)) +
         (rope.scaling.kind == RopeScalingKind::kNone ? "" : scaling_words(rope.scaling));
}

/// In the order in which it happens; empty for softmax(q k^T / sqrt(d_k)).
std::string score_words(const AttentionConfig& layer) {
  if (!layer.qk_norm && !layer.given_scale && !layer.softcap && !layer.alibi && !layer.sink) return "";
  std::vector<std::string> steps;
  if (layer.qk_norm) steps.push_back("RMS norm of q and k (eps " + given_number(layer.qk_norm_eps) + ")");
  steps.push_back(layer.given_scale ? "q k^T * " + given_number(*layer.given_scale) : "q k^T / sqrt(d_k)");
  if (layer.softcap) {
    const std::string cap = given_number(*layer.softcap);
    steps.push_back(cap + " * tanh(s / " + cap + ")");
  }
  if (layer.alibi) steps.emplace_back("- slope * |i - j| (alibi)");
  steps.emplace_back("mask");
  steps.emplace_back(layer.sink ? "softmax with a learned sink" : "softmax");
  return join(steps, "; ");
}

std::string padding_words(const RunConfig& config) {
  return to_string(config.padding.value()) + "; tokens of each item" +
         (config.memory_length ? " of the memory: " : ": ") + join_first(config.lengths) + " of " +
         std::to_string(key_length(config));
}

/// "the last 3 tokens are kept".
std::string kept_words(std::int64_t tokens) {
  if (tokens == 0) return "no token is kept";
  if (tokens == 1) return "the last token is kept";
  return "the last " + std::to_string(tokens) + " tokens are kept";
}

}  // namespace

std::vector<RunFact> feature_facts(const RunConfig& config) {
  const AttentionConfig& layer = config.attention;
  std::vector<RunFact> facts;
  if (layer.H_kv() != layer.H) facts.push_back({"heads", group_words(layer)});
  if (layer.rope) facts.push_back({"rope", rope_words(*layer.rope)});
  if (const std::string words = score_words(layer); !words.empty()) facts.push_back({"scores", words});
  if (config.padding) facts.push_back({"padding", padding_words(config)});
  return facts;
}

std::vector<RunFact> mask_facts(const RunConfig& config) {
  const AttentionConfig& layer = config.attention;
  if (!layer.window && !layer.mask && !config.padding && !config.memory_length && !config.cache) return {};
  constexpr std::string_view kPrefix = "mask: ";
  std::vector<RunFact> facts;
  for (const std::string& line : mask_words(config)) {
    facts.push_back({facts.empty() ? "mask" : "", line.starts_with(kPrefix) ? line.substr(kPrefix.size()) : line});
  }
  return facts;
}

std::vector<RunFact> engine_facts(const AttentionTrace& trace) {
  std::vector<std::string> backends;
  for (const ForwardCall& call : trace.calls) {
    const bool is_new = std::find(backends.begin(), backends.end(), call.backend) == backends.end();
    if (is_new && !call.backend.empty()) backends.push_back(call.backend);
  }
  if (backends.empty()) return {};
  return {{"engine", "sdpa, backend " + join(backends) + "; it shows nothing between q, k, v and context"}};
}

std::vector<RunFact> cache_facts(const AttentionTrace& trace) {
  const RunConfig& config = trace.config;
  if (!config.cache || trace.calls.empty()) return {};
  const AttentionConfig& layer = config.attention;
  const ForwardCall& last = trace.calls.back();
  const std::int64_t a_token = 2 * config.B * layer.H_kv() * layer.d_k() * element_size(config.dtype);
  const auto bytes = [](std::int64_t number) { return format_bytes(static_cast<std::uint64_t>(number)); };
  std::string words = bytes(a_token) + " a token (k and v" + (config.B == 1 ? "" : " of all items") + "), " +
                      bytes(last.cache_bytes) + " after the last call";
  if (layer.window) words += "; " + kept_words(*layer.window - 1) + " for the window";
  if (layer.heads_a_group() > 1) {
    words += "; " + std::to_string(layer.heads_a_group()) + " times less than with " + std::to_string(layer.H) +
             " key heads";
  }
  return {{"cache", words}};
}

}  // namespace attn
