// Times two sequential products on one device. To do: run both concurrently.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <utility>

int main() {
  torch::manual_seed(0);
  auto device = sconce::try_gpu();
  int n = 1024;
  auto x = torch::randn({n, n}, device), y = torch::randn({n, n}, device);
  auto in_sequence = [&] { return std::pair{torch::matmul(x, x), torch::matmul(y, y)}; };
  double seconds = sconce::median_seconds(in_sequence, device);
  std::cout << "Both products are on " << device << ".\n";
  std::printf("~ n = %d: in sequence %.3f ms\n", n, seconds * 1e3);
  std::cout << "Still to do: run both concurrently, with y on another GPU or stream\n";
}
