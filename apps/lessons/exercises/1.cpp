// Exercise 1: large and small products
//
// Multiply square matrices of several sizes, from a few rows to a thousand, on the CPU and, if there
// is one, on the GPU. From which size on is the GPU faster, and from which if the matrices must be
// copied there and the product back? The file times one size on the CPU.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

int main() {
  const auto device = sconce::cpu();
  const int64_t n = 64;
  auto x = torch::randn({n, n}, device);
  auto y = torch::randn({n, n}, device);
  const double seconds = sconce::median_seconds([&] { torch::matmul(x, y); }, device);
  std::cout << "n = " << n << " on " << device << '\n';
  std::printf("~ %.6f ms\n", seconds * 1e3);
}
