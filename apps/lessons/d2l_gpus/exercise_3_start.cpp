// Computes one product and reads its norm. To do: log 1000 norms in two ways.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

int main() {
  torch::manual_seed(0);
  auto device = sconce::try_gpu();
  auto A = torch::rand({1000, 100, 100}, device);
  auto B = torch::rand({1000, 100, 100}, device);
  auto norm = torch::matmul(A[0], B[0]).norm();
  std::cout << norm.device() << ": " << sconce::repr(norm.item<double>()) << '\n';
  std::cout
      << "Still to do: compute 999 more norms, and time both ways of logging them\n";
}
