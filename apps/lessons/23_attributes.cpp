// A tensor's attributes: shape, type, gradient, leaf, device, size and data of a product.
// Covers: T3.8
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

int main() {
  torch::manual_seed(0);

  // T3.8
  // note: T3 says that it creates the two on the GPU, and makes them on the CPU and copies them; it
  // demands CUDA, where this takes what there is.
  auto x = torch::randn({1000, 500}).to(try_gpu());
  auto y = torch::randn({500, 200}).to(try_gpu());
  auto result = torch::matmul(x, y);

  // note: "Type:" shows the dtype a second time. The comment in T3 says that is_leaf is False. It
  // is True: nothing here asks for a gradient, so result has no graph.
  std::cout << "Shape of the Tensor:  " << repr(result.sizes()) << '\n';
  std::cout << "Data Type:  " << repr(result.scalar_type()) << '\n';
  std::cout << "Type:  " << repr(result.scalar_type()) << '\n';
  std::cout << "requires_grad:  " << repr(result.requires_grad()) << '\n';
  std::cout << "Is Leaf:  " << repr(result.is_leaf()) << '\n';
  std::cout << "Device:  " << result.device() << '\n';
  std::cout << "Size:  " << repr(result.sizes()) << '\n';
  std::cout << "Result:  " << repr(result.data()) << '\n';

  std::cout << "Beyond the cells:\n";
  x.requires_grad_();
  auto with_gradient = torch::matmul(x, y);
  std::cout << "of an x that asks for a gradient: requires_grad "
            << repr(with_gradient.requires_grad()) << ", leaf "
            << repr(with_gradient.is_leaf()) << '\n';
}
