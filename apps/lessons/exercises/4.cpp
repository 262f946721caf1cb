// Exercise 4: two products at once
//
// Time two matrix products on two GPUs at once, and one after the other on one. How near to two does
// the ratio come, for small matrices and for large ones? With one GPU take two streams, without any two
// threads. sconce-simgpu has two GPUs for you to try where things lie; their times mean nothing. The
// file times both products one after the other.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

int main() {
  const auto devices = sconce::try_all_gpus();
  torch::manual_seed(0);
  auto x = torch::randn({256, 256}, devices.front());
  auto y = torch::randn({256, 256}, devices.back());
  for (const auto& of : {x, y}) torch::matmul(of, of).cpu();  // a warm-up
  const sconce::Stopwatch stopwatch(devices.back());
  auto first = torch::matmul(x, x);
  sconce::synchronize(x.device());
  auto second = torch::matmul(y, y);
  sconce::synchronize(y.device());
  std::cout << first.device() << ' ' << second.device() << '\n';
  std::printf("~ %.6f ms\n", stopwatch.seconds() * 1e3);
}
