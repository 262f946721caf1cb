// The speed-up: timed as the tutorial does, and timed so that the figure means something.
// Covers: T3.2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>

using sconce::repr;
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
  const auto device = sconce::try_gpu();
  auto x_gpu = x.to(device), y_gpu = y.to(device);
  const auto on_cpu = [&] { return torch::matmul(x, y); };
  const auto on_gpu = [&] { return torch::matmul(x_gpu, y_gpu); };
  const double cpu_time = sconce::median_seconds(on_cpu, sconce::cpu(), /*runs=*/3);
  const double gpu_time = sconce::median_seconds(on_gpu, device, /*runs=*/3);
  const double gflop = static_cast<double>(2 * x.size(0) * x.size(1) * y.size(1)) / 1e9;
  std::cout << "equal to the cell's: " << repr(on_cpu().equal(z_cpu)) << ", close on "
            << device << ": " << repr(on_gpu().cpu().allclose(z_cpu, 1e-5, 1e-2)) << '\n';
  std::printf("~ waited for: CPU %.0f GFLOP/s, %s %.0f GFLOP/s, speedup %.2f\n",
              gflop / cpu_time, device.str().c_str(), gflop / gpu_time,
              cpu_time / gpu_time);
}
