// A tensor's attributes: shape, type, gradient, leaf, device, size and data of a product.
// Covers: T3.8
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr;

int main() {
  torch::manual_seed(0);

  // note: T3 says that it creates the two on the GPU, and makes them on the CPU and copies them;
  // it demands CUDA, where this takes what there is.
  auto A = torch::randn({1000, 500}).to(sconce::try_gpu());
  auto B = torch::randn({500, 200}).to(sconce::try_gpu());
  auto C = torch::matmul(A, B);

  // note: the comment in T3 says that is_leaf is False. It is True: nothing here asks for a
  // gradient, so C has no graph. And "Type:" shows the dtype a second time.
  std::cout << "Shape:  " << repr(C.sizes()) << '\n';
  std::cout << "Data type:  " << repr(C.scalar_type()) << '\n';
  std::cout << "Requires gradient:  " << repr(C.requires_grad()) << '\n';
  std::cout << "Is leaf:  " << repr(C.is_leaf()) << '\n';
  std::cout << "Device:  " << C.device() << '\n';
  std::cout << "Size:  " << repr(C.sizes()) << '\n';
  std::cout << "Type:  " << repr(C.scalar_type()) << '\n';
  std::cout << "Data:  " << repr(C.data()) << '\n';
}
