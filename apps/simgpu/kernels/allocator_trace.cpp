#include "simgpu/kernels/allocator_trace.hpp"

#include <c10/cuda/CUDACachingAllocator.h>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

using c10::cuda::CUDACachingAllocator::TraceEntry;

// LibTorch 2.11 does not report which pool a block belongs to.
template <class Entry>
bool is_of_pool(const Entry& entry) {
  if constexpr (requires { entry.mempool_; }) {
    return entry.mempool_ != c10::MempoolId_t{0, 0};
  } else {
    return false;
  }
}

// This function runs while the allocator holds its lock.
void take_back(const TraceEntry& entry) {
  if (entry.action_ != TraceEntry::FREE_COMPLETED) return;
  on_freed(reinterpret_cast<const void*>(entry.addr_), entry.size_,
           static_cast<cudaStream_t>(entry.stream_), is_of_pool(entry));
}

bool attach() {
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(&take_back);
  return true;
}

}  // namespace

void trace_allocator() {
  [[maybe_unused]] static const bool is_attached = attach();
}

}  // namespace simgpu
