// Multiplies two matrices on the CPU. To do: use the GPU, include copies, and try more
// sizes.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

int main() {
  torch::manual_seed(0);
  int n = 64;
  auto x = torch::randn({n, n}), y = torch::randn({n, n});
  auto on_cpu = [&] { return torch::matmul(x, y); };
  std::printf("~ n = %d: CPU %.3f ms\n", n, sconce::median_seconds(on_cpu) * 1e3);
  std::cout << "Still to do: " << sconce::try_gpu() << " times with and without copies\n";
}
