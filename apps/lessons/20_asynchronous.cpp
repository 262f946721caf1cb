// Asynchronous work: a product returns before it is done, and synchronize waits for its end.
// Covers: T3.async
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::repr;

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto x = torch::randn({2000, 1000}, device);
  auto y = torch::randn({1000, 2000}, device);
  torch::matmul(x, y);  // a warm-up
  sconce::synchronize(device);

  // T3.async
  // note: the text has several operations run "at once". One stream runs them in order; it is the
  // host that does not wait for them.
  const sconce::Stopwatch stopwatch;  // a plain clock: it waits for no GPU
  auto z = torch::matmul(x, y);
  const double returned = stopwatch.seconds();
  sconce::synchronize(device);
  const double finished = stopwatch.seconds();

  std::cout << "z of " << repr(z.sizes()) << " on " << z.device() << '\n';
  std::cout << "z[0][1] = " << repr(z[0][1].item<double>()) << '\n';
  std::printf("~ the call returned after %.3f ms, the product was done after %.3f ms\n",
              returned * 1e3, finished * 1e3);
  if (device.is_cpu()) std::cout << "On the CPU a call returns when its work is done.\n";
}
