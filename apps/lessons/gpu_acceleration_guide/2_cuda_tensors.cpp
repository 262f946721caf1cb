// Creates a tensor on the CPU and moves it to the GPU, if there is one.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

int main() {
  torch::manual_seed(0);

  // T4.tensor
  auto device = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");
  auto tensor = torch::randn({5, 5});
  tensor = tensor.to(device);

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << sconce::repr(tensor) << '\n';
  std::cout << tensor.device() << " equals " << device << ": "
            << sconce::repr(tensor.device() == device) << '\n';
  tensor.to(torch::kHalf);
  std::cout << "dtype after tensor.to without an assignment: "
            << sconce::repr(tensor.scalar_type()) << '\n';
  std::cout << "a second to(device) returns the same tensor: "
            << sconce::repr(tensor.to(device).is_same(tensor)) << '\n';
}
