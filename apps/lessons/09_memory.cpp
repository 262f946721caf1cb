// Memory of the GPU: what tensors take, what the cache keeps, and an allocation that is refused.
// Covers: T0.memory T1.memory T3.memory
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/DeviceAccelerator.h>
#include <cstdio>
#include <iostream>

// note: LibTorch's own figures, asked for directly; they wait for sconce::cuda::memory_stats.
// Without a GPU there is no such allocator, and both figures are 0, as Python's are.
std::pair<int64_t, int64_t> memory(torch::Device device) {
  if (device.is_cpu()) return {0, 0};
  const auto stats = at::accelerator::getDeviceStats(device.index());
  return {stats.allocated_bytes[0].current, stats.reserved_bytes[0].current};
}

int main() {
  const auto device = sconce::try_gpu();
  const auto show = [device](const char* when) {
    const auto [allocated, reserved] = memory(device);
    std::printf("%s: %lld bytes of tensors, %lld reserved\n", when,
                static_cast<long long>(allocated), static_cast<long long>(reserved));
  };

  // note: nvidia-smi shows the context and the cache, which stays when the tensors are gone; it
  // does not show the tensors, as T0 and T1 have it.
  show("before");
  auto X = torch::ones({2, 3}, device);
  show("with 2x3 numbers");
  auto big = torch::empty({64, 1024, 1024}, device);
  show("with 256 MiB more");
  X = big = torch::Tensor();
  show("without them");
  if (!device.is_cpu()) at::accelerator::emptyCache();
  show("with an empty cache");

  try {
    torch::empty({int64_t{1} << 50}, torch::TensorOptions(torch::kByte).device(device));
  } catch (const c10::Error&) {
    std::cout << "a pebibyte is refused\n";
  }
  if (device.is_cpu()) std::cout << "With a GPU the figures would not be 0.\n";
}
