// Shows that the host does not wait for the GPU, and prints the GPU memory usage.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");
  auto x = torch::randn({1000, 1000}).to(device);
  auto y = torch::randn({1000, 1000}).to(device);
  auto z = torch::matmul(x, y);

  // T3.async
  sconce::synchronize(device);
  const sconce::Stopwatch stopwatch;  // a plain clock, which does not wait for the GPU
  for (int i = 0; i < 10; ++i) z = torch::matmul(x, y);
  const double queued = stopwatch.seconds();
  sconce::synchronize(device);
  const double finished = stopwatch.seconds();
  std::cout << "10 products of " << sconce::repr(z.sizes()) << " on " << z.device()
            << '\n';
  std::printf("~ queued after %.3f ms, finished after %.3f ms\n", queued * 1e3,
              finished * 1e3);

  // T3.memory
  auto show = [](const char* when) {
    auto stats = sconce::cuda::memory_stats(sconce::gpu());
    std::cout << when << ": " << stats.allocated << " bytes of tensors, "
              << stats.reserved << " bytes reserved\n";
  };
  show("with x, y, and z");
  auto big = torch::empty({64, 1024, 1024}, device);
  show("with big");
  big = torch::Tensor();
  show("without big");
  sconce::cuda::empty_cache();
  show("with an empty cache");

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  try {
    torch::empty({int64_t{1} << 50}, torch::TensorOptions(device).dtype(torch::kUInt8));
  } catch (const c10::Error&) {
    std::cout << "allocating a pebibyte on " << device.type()
              << " fails, and the program continues\n";
  }
  if (device.is_cpu()) {
    std::cout << "On the CPU, a call returns only after its work is finished.\n"
              << "Without a GPU, no GPU memory is allocated, and all figures are 0.\n";
  }
}
