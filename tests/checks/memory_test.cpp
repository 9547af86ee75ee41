// verify stays within the memory that it says it needs.
#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include "checks/check_test_support.h"
#include "config/config_file.h"
#include "experiment/memory_estimate.h"
#include "support/peak_memory.h"

namespace attn {
namespace {

using test::PeakMemory;

std::uint64_t peak_of(const RunConfig& run) {
  const auto memory = std::make_shared<PeakMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  const VerifyResult result = verify_attention(run);
  EXPECT_EQ(result.count(CheckStatus::kFail), 0) << describe(result.checks);
  return memory->peak();
}

TEST(PeakMemory, CountsTheForwardAndTheBackwardPass) {
  const auto memory = std::make_shared<PeakMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  const at::Tensor x = at::ones({1000}, at::kDouble).requires_grad_(true);
  EXPECT_GE(memory->peak(), 8000U);
  (x * x).sum().backward();
  EXPECT_GE(memory->peak(), 24000U);  // x, its square or the gradient of that, the gradient of x
}

TEST(Verify, StaysWithinTheMemoryThatItEstimates) {
  struct Case {
    std::int64_t B, T, d_model, H;
    Dtype dtype;
  };
  for (const Case& one : {Case{2, 8, 16, 4, Dtype::kFloat32}, Case{2, 50, 256, 8, Dtype::kFloat32},
                          Case{1, 160, 32, 8, Dtype::kFloat32}, Case{1, 160, 32, 8, Dtype::kBFloat16},
                          Case{1, 100, 16, 4, Dtype::kFloat64}, Case{8, 40, 64, 16, Dtype::kFloat32}}) {
    RunConfig run = small_run();
    run.B = one.B;
    run.T = one.T;
    run.attention.d_model = one.d_model;
    run.attention.H = one.H;
    run.attention.max_seq_len = 256;
    run.dtype = one.dtype;
    const std::uint64_t estimate = estimate_memory(run, Purpose::kVerify).bytes;
    const std::uint64_t peak = peak_of(run);
    EXPECT_LE(peak, estimate) << "B " << one.B << ", T " << one.T << ", d_model " << one.d_model << ", H " << one.H;
    // What does not grow with the size is taken off first: an estimate far above the truth refuses what would fit.
    RunConfig least = run;
    least.B = least.T = least.attention.H = least.attention.d_model = 1;
    EXPECT_GE(peak * 20, estimate - estimate_memory(least, Purpose::kVerify).bytes);
  }
}

TEST(Verify, StaysWithinTheMemoryThatItEstimatesWithEveryFeature) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"H_kv=2", R"(rope={"style": "half"})", "qk_norm=true", "dtype=bfloat16"},
           {"softcap=5", "alibi=true", "sink=true"},
           {"window=8", "padding=left", "lengths=[40,20]", R"(mask={"kind": "dilated", "stride": 2})"},
           {"qkv=separate", R"(memory={"T_k": 60})", "H_kv=1", "dtype=bfloat16"},
           {R"(cache={"prefill": 20, "steps": 10, "chunk": 2})", "window=5"},
           {"engine=sdpa"}}) {
    std::vector<std::string> all = {"B=2", "T=40", "d_model=32", "H=8", "max_seq_len=128"};
    all.insert(all.end(), words.begin(), words.end());
    const RunConfig run = parse_config("{}", "test", ".", all);
    EXPECT_LE(peak_of(run), estimate_memory(run, Purpose::kVerify).bytes) << words[0];
  }
}

}  // namespace
}  // namespace attn
