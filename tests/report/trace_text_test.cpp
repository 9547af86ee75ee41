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

}  // namespace
}  // namespace attn
