// A trace and a heatmap stay within the memory that they say they need.
#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include "experiment/memory_estimate.h"
#include "support/peak_memory.h"
#include "trace/attention_maps.h"
#include "trace/trace_attention.h"
#include "trace/trace_helpers.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

template <typename Work>
std::uint64_t peak_of(Work work) {
  const auto memory = std::make_shared<test::PeakMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  work();
  return memory->peak();
}

class Memory : public ::testing::TestWithParam<Words> {};

/// Long sequences, where maps are all that counts, and wide tokens, where they do not.
TEST_P(Memory, OfATraceIsEstimatedFromAbove) {
  for (const Words& sizes : {Words{"T=120", "d_model=16", "H=8", "d_k=2"}, Words{"T=12", "d_model=256", "H=8"}}) {
    for (const char* dtype : {"float32", "bfloat16", "float64"}) {
      Words words = {"B=2", "max_seq_len=128", "bias=true", std::string("dtype=") + dtype};
      words.insert(words.end(), sizes.begin(), sizes.end());
      words.insert(words.end(), GetParam().begin(), GetParam().end());
      const RunConfig config = test::config_of(words);
      const std::uint64_t trace = peak_of([&] { trace_attention(config); });
      EXPECT_LE(trace, estimate_memory(config, Purpose::kTrace).bytes) << sizes[0] << ' ' << dtype;
      EXPECT_GE(trace * 20, estimate_memory(config, Purpose::kTrace).bytes) << sizes[0] << ' ' << dtype;
      if (config.attention.engine == Engine::kSdpa) continue;
      const std::uint64_t maps = peak_of([&] { capture_attention_maps(config, Step::kWeights); });
      EXPECT_LE(maps, estimate_memory(config, Purpose::kHeatmap).bytes) << sizes[0] << ' ' << dtype;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Features, Memory,
    ::testing::Values(Words{}, Words{"H_kv=2", R"(rope={"style": "half"})", "qk_norm=true"},
                      Words{"H_kv=1", "sink=true", R"(rope={"style": "adjacent"})", "qkv=separate"},
                      Words{"softcap=5", "alibi=true", "sink=true"},
                      Words{"window=8", "padding=left", "lengths=[12,5]", R"(mask={"kind": "dilated", "stride": 2})"},
                      Words{"qkv=separate", "causal=false", R"(memory={"T_k": 90})", "H_kv=1"},
                      Words{R"(cache={"prefill": 4, "steps": 4, "chunk": 2})", "T=12", "window=5"},
                      Words{R"(cache={"prefill": 11, "steps": 1})", "T=12"},
                      Words{"module=single-head", "H=1", R"(rope={"style": "half"})", "d_k=16"},
                      Words{"engine=sdpa", "H_kv=2"}),
    [](const auto& test) { return "Feature" + std::to_string(test.index); });

}  // namespace
}  // namespace attn
