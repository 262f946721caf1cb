// Memory of the GPU: what tensors take, what the cache keeps, and an allocation that is refused.
// Covers: T0.memory T1.memory T3.memory
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

void show(const char* when) {
  const auto stats = sconce::cuda::memory_stats(sconce::gpu());
  std::cout << when << ": " << stats.allocated << " bytes of tensors, " << stats.reserved
            << " reserved\n";
}

void beyond(torch::Device device);

int main() {
  const auto device = sconce::try_gpu();

  // T0.memory, T1.memory, T3.memory
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

  beyond(device);
}

// Beyond the cells: an allocation beyond every memory is an error that can be caught.
void beyond(torch::Device device) {
  std::cout << "Beyond the cells:\n";
  try {
    torch::empty({int64_t{1} << 50}, torch::TensorOptions(torch::kByte).device(device));
  } catch (const c10::Error&) {
    std::cout << "a pebibyte is refused on " << device << '\n';
  }
  if (device.is_cpu()) std::cout << "0 everywhere: there is no GPU\n";
}
