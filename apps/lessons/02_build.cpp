// What LibTorch was built for: with CUDA or without, and whether a GPU can be used here.
// Covers: T0.import T0.build T1.build
// T0.import
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <iostream>

using sconce::repr;

// T0.build, T1.build
// note: torch.backends.cuda.is_built() has no counterpart in LibTorch. The build has CUDA if it
// has a device guard for it.
int main() {
  const bool is_built = c10::impl::hasDeviceGuardImpl(torch::kCUDA);
  const bool is_available = torch::cuda::is_available();
  std::cout << "built for CUDA: " << repr(is_built) << '\n';
  std::cout << "a GPU can be used: " << repr(is_available) << '\n';

  if (!is_built) {
    std::cout << "This is a CPU build: no driver and no GPU will change that.\n";
  } else if (!is_available) {
    std::cout << "This is a CUDA build in a process without a usable GPU.\n";
  } else {
    std::cout << "This is a CUDA build, and it can use a GPU.\n";
  }
}
