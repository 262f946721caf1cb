// Exercise 3: a thousand norms
//
// Compute a thousand products of two 100 x 100 matrices and the Frobenius norm of each. Log the norms in
// two ways: read each one by the host when it is there, or keep them in a tensor on the device and
// copy that once. Do both give the same numbers, and which one takes less time? The file reads one.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto x = torch::rand({100, 100}, device);
  auto y = torch::rand({100, 100}, device);
  auto norm = torch::matmul(x, y).norm();
  std::cout << norm.device() << ' ' << sconce::repr(norm.item<double>()) << '\n';
}
