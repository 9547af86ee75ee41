#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "core/text.h"
#include "report/records.h"
#include "report/table.h"
#include "report/text_report.h"

namespace attn {
namespace {

std::string text_of(const AttentionTrace& trace, const TextOptions& options = {}) {
  std::ostringstream out;
  write_text(out, trace, options);
  return out.str();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::string longest;
  for (std::string line; std::getline(lines, line);) {
    if (display_width(line) > display_width(longest)) longest = line;
  }
  return longest;
}

TEST(TraceText, IsPinnedForASmallTrace) {
  EXPECT_EQ(text_of(testing::make_trace()),
            "trace of small.json\n"
            "\n"
            "  layer    multi-head, qkv fused, no bias, causal\n"
            "  shape    B 1, T 3, d_model 4, H 2, d_k 2\n"
            "  input    random\n"
            "  run      cpu, float32, seed 0, 1 thread, LibTorch 2.13.0\n"
            "  weights  drawn from the seed\n"
            "\n"
            "forward in eval mode\n"
            "  step     shape            numbers       bytes   min   max   mean  std\n"
            "  x        (B, T, d_model)  (1, 3, 4)      48 B  -1.5  2.25  0.125    1\n"
            "  weights  (B, H, T, T)     (1, 2, 3, 3)   72 B  -1.5  2.25  0.125    1\n"
            "  all contiguous\n"
            "\n"
            "backward: gradients of steps and parameters, in the order in which they arise\n"
            "  step           shape               numbers       bytes   min   max   mean  std\n"
            "  weights        (B, H, T, T)        (1, 2, 3, 3)   72 B  -1.5  2.25  0.125    1\n"
            "  c_attn.weight  (3*H*d_k, d_model)  (12, 4)       192 B  -1.5  2.25  0.125    1\n"
            "  all contiguous\n"
            "\n"
            "summary\n"
            "  parameters    64\n"
            "  forward       1,234,567 FLOPs of matrix products (a multiply-add is 2)\n"
            "  backward      2,469,134 FLOPs of matrix products\n"
            "  (B, H, T, T)  72 B each, 2 of them above\n"
            "  loss          -0.75, sum(output * dy)\n");
}

TEST(TraceText, SaysWhereATensorIsStrided) {
  AttentionTrace trace = testing::make_trace();
  trace.steps[1].contiguous = false;
  const std::string text = text_of(trace);
  EXPECT_TRUE(has(text, "(1, 2, 3, 3)*"));
  EXPECT_TRUE(has(text, "  * not contiguous\n"));
}

TEST(TraceText, CountsNanAndInfinityWhereThereAreSome) {
  AttentionTrace trace = testing::make_trace();
  EXPECT_FALSE(has(text_of(trace), "inf"));
  trace.steps[1].stats.inf = 1234;
  trace.steps[1].stats.nan = 7;
  EXPECT_TRUE(has(text_of(trace), "nan    inf"));
  EXPECT_TRUE(has(text_of(trace), "  7  1,234\n"));
}

TEST(TraceText, LeavesTheRangeOfATensorWithoutFiniteNumbersEmpty) {
  AttentionTrace trace = testing::make_trace();
  trace.steps[0].stats = {std::nullopt, std::nullopt, std::nullopt, std::nullopt, 12, 0};
  EXPECT_TRUE(has(text_of(trace), "48 B                           12\n"));
}

TEST(TraceText, ShowsTheDtypeOnlyWhereOneDiffers) {
  AttentionTrace trace = testing::make_trace();
  EXPECT_FALSE(has(text_of(trace), "dtype"));
  trace.steps[0].dtype = "int64";
  EXPECT_TRUE(has(text_of(trace), "int64"));
}

TEST(TraceText, FitsTheWidthAlsoWithLongNamesAndUglyNumbers) {
  AttentionTrace trace = testing::make_trace();
  for (TraceStep& step : trace.steps) {
    step.symbolic = "(max_seq_len, d_model)";
    step.shape = {4, 32, 1024, 1024};
    step.bytes = 536870912;
    step.stats = {-1.23456e-7, 9.87654e-9, -3.33333e-12, 1.23456e-10, 0, 0};
  }
  trace.steps[3].name = "position_embedding.weight";
  const std::string longest = longest_line(text_of(trace));
  EXPECT_LE(display_width(longest), kTextWidth) << longest;
}

TEST(TraceText, HasNoBackwardPartWithoutABackwardPass) {
  AttentionTrace trace = testing::make_trace();
  trace.steps.resize(2);
  const std::string text = text_of(trace);
  EXPECT_FALSE(has(text, "backward"));
  EXPECT_FALSE(has(text, "loss"));
}

TEST(TraceText, TellsTheTimeOnlyWhenVerbose) {
  EXPECT_FALSE(has(text_of(testing::make_trace()), "time"));
  EXPECT_TRUE(has(text_of(testing::make_trace(), {.verbose = true}), "time"));
}

TEST(TraceText, IsPlainUnlessColorIsAskedFor) {
  EXPECT_FALSE(has(text_of(testing::make_trace()), "\x1b"));
  EXPECT_TRUE(has(text_of(testing::make_trace(), {.color = true}), "\x1b[1mforward\x1b[0m"));
}

TEST(TraceText, NamesOfTheConfigCannotMoveTheCursor) {
  AttentionTrace trace = testing::make_trace();
  trace.config.source_name = "evil\x1b[2J.json";
  EXPECT_FALSE(has(text_of(trace), "\x1b"));
}

/// P 2, then 2 calls of 1.
AttentionTrace make_cached_trace() {
  AttentionTrace trace = testing::make_trace();
  trace.config.T = 4;
  trace.config.cache = CacheConfig{2, 2, 1};
  trace.calls = {{0, 0, 2, 0, 2, 64, ""}, {1, 2, 1, 0, 3, 96, ""}, {2, 3, 1, 0, 4, 128, ""}};
  trace.steps.clear();
  for (const ForwardCall& call : trace.calls) {
    trace.steps.push_back(
        testing::make_step("forward", "weights", "(B, H, T_q, T_k)", {1, 2, call.queries, call.keys}));
    trace.steps.back().call = call.call;
  }
  trace.summary.attention_tensors = 3;
  return trace;
}

TEST(TraceText, OfACachedRunShowsTheFirstAndTheLastCallAndALineForEachBetween) {
  const std::string text = text_of(make_cached_trace());
  EXPECT_TRUE(has(text, "forward call 0 in eval mode: T_q 2, T_k 2; query 0 sits at position 0, key 0 at 0\n")) << text;
  EXPECT_TRUE(has(text,
                  "forward call 1: a line each, --json holds every step\n"
                  "  call  positions  T_q  T_k  kept\n"
                  "     1          2    1    3  96 B\n"))
      << text;
  EXPECT_TRUE(has(text, "forward call 2 in eval mode: T_q 1, T_k 4; query 0 sits at position 3, key 0 at 0\n")) << text;
  EXPECT_TRUE(has(text, "backward: none, a cache is for inference\n")) << text;
  EXPECT_TRUE(has(text, "(1, 2, 1, 4)")) << text;
  EXPECT_FALSE(has(text, "(1, 2, 1, 3)")) << text;
  EXPECT_TRUE(has(text, "3 of them in 3 calls\n")) << text;
}

TEST(TraceText, OfVeryManyCallsLeavesOutThoseInTheMiddle) {
  AttentionTrace trace = make_cached_trace();
  const ForwardCall prefill = trace.calls[0], last = trace.calls[2];
  const auto text_of_calls = [&](std::int64_t between) {
    trace.calls = {prefill};
    for (std::int64_t call = 1; call <= between; ++call)
      trace.calls.push_back({call, call + 1, 1, 0, call + 2, 96, ""});
    trace.calls.push_back(last);
    return text_of(trace);
  };
  EXPECT_FALSE(has(text_of_calls(24), "...")) << text_of(trace);
  const std::string text = text_of_calls(1000);
  EXPECT_TRUE(has(text, "forward calls 1 to 1000: a line each for the first and the last, --json holds every step\n"));
  EXPECT_TRUE(has(text,
                  "     8          9    1    10  96 B\n"
                  "   ...        ...  ...   ...   ...\n"
                  "   993        994    1   995  96 B\n"))
      << text;
  EXPECT_TRUE(has(text, "  1000       1001    1  1002  96 B\n")) << text;
}

TEST(TraceText, SaysWhatTheCacheTakes) {
  AttentionTrace trace = make_cached_trace();
  EXPECT_TRUE(has(text_of(trace), "  cache    32 B a token (k and v), 128 B after the last call\n")) << text_of(trace);
  trace.config.attention.given_H_kv = 1;
  EXPECT_TRUE(has(text_of(trace),
                  "  cache    16 B a token (k and v), 128 B after the last call; 2 times less than with "
                  "2 key heads\n"))
      << text_of(trace);
  trace.config.attention.window = 3;
  EXPECT_TRUE(has(text_of(trace), "the last 2 tokens are kept for the window")) << text_of(trace);
}

TEST(TraceText, NamesWhatTheLayerHasBeyondPlainAttention) {
  AttentionTrace trace = testing::make_trace();
  AttentionConfig& layer = trace.config.attention;
  layer.d_model = 32;
  layer.H = 8;
  layer.given_H_kv = 2;
  layer.rope = RopeConfig();
  layer.rope->theta = 500000.0;
  layer.rope->scaling.kind = RopeScalingKind::kLlama3;
  layer.rope->scaling.factor = 8.0;
  layer.window = 2;
  layer.softcap = 50.0;
  layer.given_scale = 0.1;
  layer.sink = true;
  layer.qk_norm = true;
  trace.config.padding = PaddingSide::kLeft;
  trace.config.lengths = {2};
  const std::string text = text_of(trace);
  for (const char* line :
       {"  layer    multi-head, qkv fused, no bias, causal, window 2, rope half, qk_norm, scale 0.1, softcap 50, "
        "sink\n",
        "  shape    B 1, T 3, d_model 32, H 8, H_kv 2, d_k 4\n",
        "  heads    8 query heads share 2 key heads: key head 0 -> heads 0-3, 1 -> 4-7\n",
        "  rope     half (channel c with c + d_k/2), theta 500000, scaling llama3: factor 8, low_freq_factor 1, "
        "high_freq_factor\n           4, original_max_seq_len 8192\n",
        "  scores   RMS norm of q and k (eps 1e-06); q k^T * 0.1; 50 * tanh(s / 50); mask; softmax with a learned "
        "sink\n",
        "  padding  left; tokens of each item: 2 of 3\n", "  mask     true keeps"}) {
    EXPECT_TRUE(has(text, line)) << line << text;
  }
  EXPECT_LE(display_width(longest_line(text)), kTextWidth) << longest_line(text);
}

TEST(TraceText, ListsFewOfManyGroups) {
  AttentionTrace trace = testing::make_trace();
  trace.config.attention.d_model = 64;
  trace.config.attention.H = 32;
  trace.config.attention.given_H_kv = 16;
  EXPECT_TRUE(has(text_of(trace),
                  "  heads    32 query heads share 16 key heads: key head 0 -> heads 0-1, 1 -> 2-3, 2 -> "
                  "4-5, ..., 15 -> 30-31\n"))
      << text_of(trace);
}

TEST(TraceText, NamesTheBackendThatRanAndNoMapWhereThereIsNone) {
  AttentionTrace trace = testing::make_trace();
  trace.config.attention.engine = Engine::kSdpa;
  trace.calls = {{0, 0, 3, 0, 3, 0, "flash"}};
  trace.summary.attention_tensors = 0;
  const std::string text = text_of(trace);
  EXPECT_TRUE(has(text, "  engine   sdpa, backend flash; it shows nothing between q, k, v and context\n")) << text;
  EXPECT_FALSE(has(text, "each, ")) << text;
}

TEST(TraceText, CallsBothLengthsByNameWithAMemory) {
  AttentionTrace trace = testing::make_trace();
  trace.config.memory_length = 5;
  trace.config.attention.causal = false;
  const std::string text = text_of(trace);
  EXPECT_TRUE(has(text, "  shape    B 1, T_q 3, T_k 5, d_model 4, H 2, d_k 2\n")) << text;
  EXPECT_TRUE(has(text, "of two sequences")) << text;
  EXPECT_TRUE(has(text, "  (B, H, T_q, T_k)  72 B each")) << text;
}

}  // namespace
}  // namespace attn
