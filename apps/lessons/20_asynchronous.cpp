// Asynchronous work: a product returns before it is done, and synchronize waits for its end.
// Covers: T3.async
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <chrono>
#include <cstdio>

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto x = torch::rand({2000, 2000}, device), y = torch::rand({2000, 2000}, device);
  torch::matmul(x, y);  // a warm-up
  sconce::synchronize(device);

  // note: the text has several operations run "at once". One stream runs them in order; it is the
  // host that does not wait for them.
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  auto z = torch::matmul(x, y);
  const auto returned = clock::now();
  sconce::synchronize(device);
  const auto finished = clock::now();

  using milliseconds = std::chrono::duration<double, std::milli>;
  std::printf("~ the call returned after %.3f ms\n", milliseconds(returned - start).count());
  std::printf("~ the product was done after %.3f ms\n", milliseconds(finished - start).count());
  if (device.is_cpu()) std::printf("On the CPU a call returns when its work is done.\n");
}
