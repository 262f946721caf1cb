#pragma once

#include <c10/core/Allocator.h>

#include <algorithm>
#include <cstdint>

namespace sconce::test {

/// Tracks the current and peak tensor memory, in bytes, as a thread allocates and frees tensors.
struct LiveMemory : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
    now += size;
    peak = std::max(peak, now);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t now = 0;
  int64_t peak = 0;
};

}  // namespace sconce::test
