// The CPU's cores: how many threads a product uses, and what one of them takes.
// Covers: T1.cores T2.cores
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::median_seconds, sconce::repr;

void beyond(int threads);

int main() {
  // T1.cores, T2.cores
  const int threads = torch::get_num_threads();
  std::cout << "threads: " << threads << '\n';

  beyond(threads);
}

// Beyond the cells: a product by one thread and by all.
void beyond(int threads) {
  // note: the device cpu stands for all cores, but a process may be given fewer: torchrun sets
  // OMP_NUM_THREADS to 1 for each of its processes.
  torch::manual_seed(0);
  // Of whole numbers the sums are exact, however threads share them.
  auto x = torch::randint(2, {1000, 800}, torch::kFloat);
  auto y = torch::randint(2, {800, 1000}, torch::kFloat);
  const auto multiply = [&] { return torch::matmul(x, y); };
  const int64_t operations = 2 * x.size(0) * x.size(1) * y.size(1);
  std::cout << "floating-point operations: " << operations << '\n';
  for (const int used : {1, threads}) {
    torch::set_num_threads(used);
    const double seconds = median_seconds(multiply);
    auto z = multiply();
    std::cout << "product by " << torch::get_num_threads() << ": " << repr(z.sizes())
              << ", z[0][1] = " << repr(z[0][1].item<double>()) << '\n';
    std::printf("~ %.3f ms, %.1f GFLOP/s\n", seconds * 1e3,
                static_cast<double>(operations) / seconds / 1e9);
  }
}
