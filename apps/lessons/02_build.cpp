// What LibTorch was built for: with CUDA or without, and whether a GPU can be used here.
// Covers: T0.import T0.build T1.build
// T0.import
// note: T0 imports four frameworks into the same names, and later cells branch on a variable that
// nothing defines. Here the includes are LibTorch's, sconce's and the standard library's.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <iostream>

using sconce::repr;

int main() {
  // T0.build, T1.build
  // note: T1's line to install with, in its PyTorch tab, names a package that does not exist under
  // that name. LibTorch comes with the wheel of torch, CUDA's libraries with it; no toolkit is
  // needed.
  const bool is_built = c10::impl::hasDeviceGuardImpl(torch::kCUDA);
  const bool is_available = torch::cuda::is_available();
  std::cout << "built for CUDA: " << repr(is_built) << '\n';
  std::cout << "a GPU can be used: " << repr(is_available) << '\n';

  if (!is_built) {
    std::cout << "This is a CPU build: no driver and no GPU will change that.\n";
  } else if (!is_available) {
    std::cout
        << "This is a CUDA build on a machine, or in a process, without a usable GPU.\n";
  } else {
    std::cout << "This is a CUDA build, and it can use a GPU.\n";
  }
}
