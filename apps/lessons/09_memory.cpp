// Memory of the GPU: what tensors take, what the cache keeps, and an allocation that is refused.
// Covers: T0.memory T1.memory T3.memory
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <cstdio>
#include <iostream>
#include <vector>

// Is told of each block on the device, as a profiler is: its bytes, negative when freed.
struct Blocks : c10::MemoryReportingInfoBase {
  explicit Blocks(torch::Device on) : device(on) {}
  bool memoryProfilingEnabled() const override { return true; }
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t,
                         torch::Device where) override {
    if (where.type() == device.type()) sizes.push_back(bytes);
  }
  torch::Device device;
  std::vector<int64_t> sizes;
};

int main() {
  const auto device = sconce::try_gpu();
  // note: without a GPU there is nothing of one to count, and both are 0, as Python's are.
  const auto show = [](const char* when) {
    const auto stats = sconce::cuda::memory_stats(sconce::gpu());
    std::printf("%s: %lld bytes of tensors, %lld reserved\n", when,
                static_cast<long long>(stats.allocated),
                static_cast<long long>(stats.reserved));
  };
  const auto blocks = std::make_shared<Blocks>(device);
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, blocks);

    // T0.memory, T1.memory, T3.memory
    // note: nvidia-smi shows the context and the cache, which stays when the tensors are gone; it
    // does not show the tensors, as T0 and T1 have it.
    show("before");
    auto X = torch::ones({2, 3}, device);
    show("with 2x3 numbers");
    auto big = torch::empty({64, 1024, 1024}, device);
    show("with 256 MiB more");
    X = torch::Tensor();
    big = torch::Tensor();
    show("without them");
    sconce::cuda::empty_cache();
    show("with an empty cache");
    try {
      torch::empty({int64_t{1} << 50}, torch::TensorOptions(torch::kByte).device(device));
    } catch (const c10::Error&) {
      std::cout << "a pebibyte is refused\n";
    }
  }

  // note: the figures above know the GPU only. What a profiler of memory is told is counted on the
  // CPU too, where a block has the size of its tensor; the GPU's are rounded up to 512 bytes.
  std::cout << "Beyond the cells:\nblocks taken (+) and freed (-) on " << device.type()
            << ":";
  int64_t in_use = 0, peak = 0;
  for (const int64_t bytes : blocks->sizes) {
    std::printf(" %+lld", static_cast<long long>(bytes));
    peak = std::max(peak, in_use += bytes);
  }
  std::printf("\nblocks: %zu, peak: %lld bytes, at the end: %lld\n",
              blocks->sizes.size() / 2, static_cast<long long>(peak),
              static_cast<long long>(in_use));
}
