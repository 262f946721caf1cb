// The CPU's cores: how many threads a product uses, and what one of them takes.
// Covers: T1.cores T2.cores
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

int main() {
  // note: the device cpu stands for all cores, but a process may be given fewer: torchrun sets
  // OMP_NUM_THREADS to 1 for each of its processes.
  const int threads = torch::get_num_threads();
  std::printf("threads: %d\n", threads);

  // The number is set for the operators of this thread; where products are small, a second thread
  // can cost more than it brings, and where another program runs beside, too.
  torch::manual_seed(0);
  auto x = torch::rand({1000, 1000});
  for (const int count : {1, threads}) {
    torch::set_num_threads(count);
    const double seconds = sconce::median_seconds([&] { torch::matmul(x, x); });
    const double rate = 2e9 / seconds;  // FLOP/s
    std::printf("~ a product with threads %d: %.3f ms, %.1f GFLOP/s\n", count, seconds * 1e3,
                rate / 1e9);
  }
}
