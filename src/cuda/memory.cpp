#include "sconce/cuda/memory.hpp"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "resolve_device.hpp"

namespace sconce::cuda {

namespace {

// Returns LibTorch's GPU allocator. Returns null until the first GPU tensor has been created,
// because the allocator rejects queries before then.
c10::DeviceAllocator* gpu_allocator() {
  if (!c10::impl::hasDeviceGuardImpl(c10::kCUDA)) return nullptr;
  auto* allocator = at::getDeviceAllocator(c10::kCUDA);
  return allocator->initialized() ? allocator : nullptr;
}

void check_type(torch::Device device, const char* caller) {
  TORCH_CHECK(device.is_cpu() || device.is_cuda(), caller, ": expected a CPU or CUDA device, got ",
              device);
}

// Returns the value, in bytes, of an entry such as "VmRSS" in this process's status file, if the
// system provides the entry.
std::optional<int64_t> process_memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string line;
  int64_t kibibytes = -1;
  while (kibibytes < 0 && std::getline(status, line)) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream figure(line.substr(name.size() + 1));
    if (!(figure >> kibibytes)) break;
  }
  return kibibytes > 0 ? std::optional(kibibytes * 1024) : std::nullopt;
}

// gVisor does not provide "VmHWM".
int64_t peak_memory() {
  if (const auto peak = process_memory("VmHWM")) return *peak;
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

MemoryStats memory_stats(torch::Device device) {
  constexpr auto caller = "sconce::cuda::memory_stats";
  check_type(device, caller);
  if (device.is_cpu()) {
    const auto now = process_memory("VmRSS");
    TORCH_CHECK(now, caller, ": expected 'VmRSS' in /proc/self/status, found none");
    const int64_t peak = std::max(peak_memory(), *now);
    return {*now, peak, *now, peak};
  }
  auto* allocator = gpu_allocator();
  if (allocator == nullptr) return {};
  const auto stats = allocator->getDeviceStats(resolve_device(device, caller).index());
  const auto& allocated = stats.allocated_bytes[0];  // sum over all pools
  const auto& reserved = stats.reserved_bytes[0];
  return {allocated.current, allocated.peak, reserved.current, reserved.peak};
}

void reset_peak_memory_stats(torch::Device device) {
  constexpr auto caller = "sconce::cuda::reset_peak_memory_stats";
  check_type(device, caller);
  if (device.is_cpu()) {
    std::ofstream file("/proc/self/clear_refs");
    file << 5 << std::flush;  // writing 5 resets only the peak value
    TORCH_CHECK(
        file, caller,
        ": expected /proc/self/clear_refs to be writable (to reset the peak), got an error");
  } else if (auto* allocator = gpu_allocator()) {
    allocator->resetPeakStats(resolve_device(device, caller).index());
  }
}

void empty_cache() {
  if (auto* allocator = gpu_allocator()) allocator->emptyCache();
}

}  // namespace sconce::cuda
