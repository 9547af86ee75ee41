// How much memory a piece of work takes, for tests of the memory estimate.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>

namespace attn::test {

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

}  // namespace attn::test
