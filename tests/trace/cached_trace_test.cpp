// Traces of runs with a cache: call by call.
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/tensor_helpers.h"
#include "trace/trace_attention.h"
#include "trace/trace_helpers.h"

namespace attn {
namespace {

using test::find_step_of;
using test::names_of;
using test::small_config;

constexpr TraceOptions kWithValues{.backward = true, .max_values = 1 << 20};

at::Tensor traced_tensor(const TraceStep& step) { return test::tensor_of(step.shape, step.values); }

RunConfig cached_config(std::vector<std::string> more = {}) {
  more.insert(more.end(), {"T=7", "H=6", "H_kv=2", R"(cache={"prefill": 3, "steps": 2, "chunk": 2})"});
  return small_config(more);
}

/// The step of one call.
const TraceStep& step_of_call(const AttentionTrace& trace, std::int64_t call, const std::string& name) {
  for (const TraceStep& step : trace.steps) {
    if (step.call == call && step.name == name) return step;
  }
  throw std::runtime_error(name + " is not in call " + std::to_string(call));
}

TEST(CachedTrace, CountsItsCallsAndWhatTheyMayLookAt) {
  const AttentionTrace trace = trace_attention(cached_config());
  ASSERT_EQ(trace.calls.size(), 3U);
  const std::int64_t a_token = 2 * 2 * 2 * 2 * 4;  // k and v, B, H_kv, d_k, float32
  for (std::int64_t n = 0; n < 3; ++n) {
    const ForwardCall& call = trace.calls[static_cast<std::size_t>(n)];
    EXPECT_EQ(call.call, n);
    EXPECT_EQ(call.first_query, n == 0 ? 0 : 1 + 2 * n);
    EXPECT_EQ(call.queries, n == 0 ? 3 : 2);
    EXPECT_EQ(call.first_key, 0);
    EXPECT_EQ(call.keys, 3 + 2 * n);
    EXPECT_EQ(call.cache_bytes, call.keys * a_token);
  }
  EXPECT_EQ(names_of(trace, "").size(), 0U);  // no backward pass
  EXPECT_EQ(trace.summary.backward_flops, 0);
}

TEST(CachedTrace, AWindowDropsOldKeys) {
  const AttentionTrace trace = trace_attention(cached_config({"window=2"}));
  EXPECT_EQ(trace.calls[2].first_key, 4);
  EXPECT_EQ(trace.calls[2].keys, 3);
  EXPECT_EQ(trace.calls[2].cache_bytes, 1 * 2 * 2 * 2 * 2 * 4);
}

TEST(CachedTrace, LettersAndNumbersAgreeInEveryCall) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"window=2", R"(rope={"style": "half"})", "qk_norm=true"},
        {"qkv=separate", R"(embedding={"vocab_size": 7, "positions": "learned"})"},
        {"padding=left", "lengths=[7,2]", R"(embedding={"vocab_size": 7, "positions": "sinusoidal"})"}}) {
    const RunConfig config = cached_config(more);
    const AttentionTrace trace = trace_attention(config);
    for (const TraceStep& step : trace.steps) {
      EXPECT_EQ(step.shape, test::evaluate(step.symbolic, config, trace.calls.at(static_cast<std::size_t>(step.call))))
          << step.call << ' ' << step.name << ' ' << step.symbolic;
    }
  }
}

TEST(CachedTrace, GivesTheOutputOfTheFullRunPieceByPiece) {
  std::vector<std::string> words = {"dtype=float64", R"(rope={"style": "adjacent"})"};
  const AttentionTrace pieces = trace_attention(cached_config(words), kWithValues);
  words.insert(words.end(), {"T=7", "H=6", "H_kv=2"});
  const AttentionTrace whole = trace_attention(small_config(words), kWithValues);
  const at::Tensor expected = traced_tensor(find_step_of(whole, "forward", "output"));
  for (const ForwardCall& call : pieces.calls) {
    const at::Tensor output = traced_tensor(step_of_call(pieces, call.call, "output"));
    EXPECT_LE(test::max_difference(output, expected.narrow(1, call.first_query, call.queries)), 1e-13) << call.call;
  }
}

TEST(CachedTrace, FlopsAreThoseOfTheKeysThatAreLookedAt) {
  // B 2, T 7 as 3 + 2 + 2, d_model 12, H 6, H_kv 2, d_k 2.
  const TraceSummary summary = trace_attention(cached_config()).summary;
  const std::int64_t projections = 2 * 14 * 12 * (12 + 2 * 4) + 2 * 14 * 12 * 12;
  EXPECT_EQ(summary.forward_flops, projections + 2 * (2 * 2 * 6 * (3 * 3 + 2 * 5 + 2 * 7) * 2));
  EXPECT_EQ(summary.attention_bytes, 2 * 6 * 2 * 7 * 4);  // the last call's: 14 cells, the first has 9
  EXPECT_EQ(summary.attention_tensors, 3 * 5);
}

TEST(CachedTrace, NamesItsTensorsByCallAndKeepsAllOfX) {
  const AttentionTrace trace = trace_attention(cached_config(), {.backward = true, .keep_tensors = true});
  const auto shape = [&](const std::string& name) {
    for (const KeptTensor& tensor : trace.kept) {
      if (tensor.name == name) return tensor.shape;
    }
    return std::vector<std::int64_t>{};
  };
  EXPECT_EQ(shape("forward.scores"), (std::vector<std::int64_t>{2, 6, 3, 3}));
  EXPECT_EQ(shape("forward.1.scores"), (std::vector<std::int64_t>{2, 6, 2, 5}));
  EXPECT_EQ(shape("forward.2.k_cached"), (std::vector<std::int64_t>{2, 2, 7, 2}));
  EXPECT_EQ(shape("x"), (std::vector<std::int64_t>{2, 7, 12}));
}

}  // namespace
}  // namespace attn
