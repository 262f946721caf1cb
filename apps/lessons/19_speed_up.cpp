// The speed-up: timed as the tutorial does, and timed so that the figure means something.
// Covers: T3.2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <chrono>
#include <cstdio>

// One run, by a plain clock that waits for nobody.
double launch_seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int main() {
  const auto device = sconce::try_gpu();
  const char* name = device.is_cpu() ? "cpu" : "gpu";
  torch::manual_seed(0);
  auto A = torch::rand({2000, 2000}), B = torch::rand({2000, 2000});
  auto C = A.to(device), D = B.to(device);
  const auto on_cpu = [&] { torch::matmul(A, B); };
  const auto on_device = [&] { torch::matmul(C, D); };
  const auto show = [](const char* where, const char* how, double seconds) {
    const double flops = 2. * 2000 * 2000 * 2000;
    std::printf("~ %s, %s: %.3f ms, %.0f GFLOP/s\n", where, how, seconds * 1e3,
                flops / seconds / 1e9);
    return seconds;
  };

  // note: T3 takes one run each, the first ones, and reads the clock when the GPU has been asked,
  // not when it has answered. Its "70.72 times" would be 27.7 TFLOP/s in float32, above what such a
  // GPU can do: T4 8.1, A100 19.5. The transfers are left out, here too.
  const double cpu_launch = show("cpu", "first run", launch_seconds(on_cpu));
  const double launch = show(name, "first run, not waited for", launch_seconds(on_device));
  std::printf("~ the tutorial's speed-up: %.2f\n", cpu_launch / launch);

  const double cpu_median =
      show("cpu", "median after a warm-up", sconce::median_seconds(on_cpu, sconce::cpu(), 3));
  const double median = show(name, "median after a warm-up, synchronized",
                             sconce::median_seconds(on_device, device, 3));
  std::printf("~ the honest speed-up: %.2f\n", cpu_median / median);
  if (device.is_cpu()) std::printf("There is no GPU here: both are the CPU.\n");
}
