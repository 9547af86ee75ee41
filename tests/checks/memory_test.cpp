// verify stays within the memory that it says it needs.
#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "checks/check_test_support.h"
#include "experiment/memory_estimate.h"

namespace attn {
namespace {

/// Bytes of tensors alive on this thread, and the most that they ever were.
class PeakMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t change, size_t, size_t, c10::Device) override {
    alive_ += change;
    peak_ = std::max(peak_, alive_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::uint64_t peak() const { return static_cast<std::uint64_t>(peak_); }

 private:
  std::int64_t alive_ = 0, peak_ = 0;
};

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

}  // namespace
}  // namespace attn
