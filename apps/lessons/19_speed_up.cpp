// The speed-up: timed as the tutorial does, and timed so that the figure means something.
// Covers: T3.2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <chrono>
#include <cstdio>

using seconds = std::chrono::duration<double>;
using std::chrono::steady_clock;

void beyond(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& z_cpu);

int main() {
  torch::manual_seed(0);

  // T3.2
  const int64_t matrix_size = 2000;
  auto x = torch::randn({matrix_size, matrix_size});
  auto y = torch::randn({matrix_size, matrix_size});
  auto start_time = steady_clock::now();
  auto z_cpu = torch::matmul(x, y);
  const double cpu_time = seconds(steady_clock::now() - start_time).count();
  std::printf("~ CPU Time: %.6f seconds\n", cpu_time);
  if (torch::cuda::is_available()) {
    const torch::Device device("cuda");
    auto x_gpu = x.to(device);
    auto y_gpu = y.to(device);
    start_time = steady_clock::now();
    auto z_gpu = torch::matmul(x_gpu, y_gpu);
    const double gpu_time = seconds(steady_clock::now() - start_time).count();
    std::printf("~ GPU Time: %.6f seconds\n", gpu_time);
    const double speedup = cpu_time / gpu_time;
    std::printf("~ Speedup: GPU is %.2f times faster than CPU!\n", speedup);
  } else {
    std::printf("GPU not available, computations performed on CPU only.\n");
  }

  beyond(x, y, z_cpu);
}

// Beyond the cell: medians after a warm-up, each product waited for.
void beyond(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& z_cpu) {
  // note: T3 takes one run each, the first ones, and reads the clock when the GPU has been asked,
  // not when it has answered. Its "70.72 times" would be 27.7 TFLOP/s in float32, above what such a
  // GPU can do: T4 8.1, A100 19.5. The transfers are left out, here too.
  const auto measure = [&](torch::Device device) {
    auto a = x.to(device), b = y.to(device);
    const auto multiply = [&] { return torch::matmul(a, b); };
    const double time = sconce::median_seconds(multiply, device, /*runs=*/3);
    const auto close =
        torch::allclose(multiply().cpu(), z_cpu, /*rtol=*/1e-5, /*atol=*/1e-2);
    std::printf("waited for on %s: close to the cell's %s\n", device.str().c_str(),
                sconce::repr(close).c_str());
    std::printf("~ %.6f seconds, %.0f GFLOP/s\n", time,
                2e-9 * x.size(0) * x.size(1) * y.size(1) / time);
    return time;
  };
  std::printf("z_cpu[0][1] = %s\n", sconce::repr(z_cpu[0][1].item<double>()).c_str());
  const double cpu_time = measure(sconce::cpu());
  if (sconce::num_gpus() > 0)
    std::printf("~ GPU is %.2f times faster\n", cpu_time / measure(sconce::gpu()));
}
