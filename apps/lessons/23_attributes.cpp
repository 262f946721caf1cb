// A tensor's attributes: shape, type, gradient, leaf, device, size and data of a product.
// Covers: T3.8
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

void beyond(const torch::Tensor& x, const torch::Tensor& y);

int main() {
  torch::manual_seed(0);

  // T3.8
  // note: T3 says that it creates the two on the GPU; it makes them on the CPU and copies them.
  auto x = torch::randn({1000, 500}).to(try_gpu());
  auto y = torch::randn({500, 200}).to(try_gpu());
  auto result = torch::matmul(x, y);

  std::cout << "Shape of the Tensor:  " << repr(result.sizes()) << '\n';
  std::cout << "Data Type:  " << repr(result.scalar_type()) << '\n';
  // note: "Type:" shows the dtype a second time. C++'s `type()` is something else, and deprecated.
  std::cout << "Type:  " << repr(result.scalar_type()) << '\n';
  std::cout << "requires_grad:  " << repr(result.requires_grad()) << '\n';
  std::cout << "Is Leaf:  " << repr(result.is_leaf()) << '\n';
  std::cout << "Device:  " << result.device() << '\n';
  std::cout << "Size:  " << repr(result.sizes()) << '\n';
  std::cout << "Result:  " << repr(result.data()) << '\n';

  beyond(x, y);
}

// Beyond the cells: T3's comment says that is_leaf is False. Only a gradient makes it so.
void beyond(const torch::Tensor& x, const torch::Tensor& y) {
  x.requires_grad_();
  auto result = torch::matmul(x, y);
  std::cout << "With a gradient, requires_grad:  " << repr(result.requires_grad())
            << '\n';
  std::cout << "With a gradient, Is Leaf:  " << repr(result.is_leaf()) << '\n';
}
