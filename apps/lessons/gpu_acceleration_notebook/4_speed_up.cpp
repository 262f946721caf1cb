// Times a matrix product as the tutorial does, and then including the wait for the
// result.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>

int main() {
  torch::manual_seed(0);
  auto seconds = [](std::chrono::duration<double> time) { return time.count(); };

  // T3.2
  auto matrix_size = 2000;
  auto x = torch::randn({matrix_size, matrix_size});
  auto y = torch::randn({matrix_size, matrix_size});
  auto start_time = std::chrono::steady_clock::now();
  auto z_cpu = torch::matmul(x, y);
  auto cpu_time = seconds(std::chrono::steady_clock::now() - start_time);
  std::printf("~ CPU Time: %.4f seconds\n", cpu_time);
  if (torch::cuda::is_available()) {
    auto device = torch::Device("cuda");
    auto x_gpu = x.to(device);
    auto y_gpu = y.to(device);
    start_time = std::chrono::steady_clock::now();
    auto z_gpu = torch::matmul(x_gpu, y_gpu);
    auto gpu_time = seconds(std::chrono::steady_clock::now() - start_time);
    std::printf("~ GPU Time: %.4f seconds\n", gpu_time);
    auto speedup = cpu_time / gpu_time;
    std::printf("~ Speedup: GPU is %.2f times faster than CPU!\n", speedup);
  } else {
    std::cout << "GPU not available, computations performed on CPU only.\n";
  }

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  auto device = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");
  auto x_gpu = x.to(device);
  auto y_gpu = y.to(device);
  torch::matmul(x_gpu, y_gpu);  // initializes the library and allocates the result
  sconce::synchronize(device);

  const sconce::Stopwatch stopwatch;  // a plain clock, as in the tutorial
  auto z_gpu = torch::matmul(x_gpu, y_gpu);
  const double returned = stopwatch.seconds();
  sconce::synchronize(device);
  const double finished = stopwatch.seconds();
  std::printf("~ the launch returned after %.3f ms: speedup %.2f\n", returned * 1e3,
              cpu_time / returned);
  std::printf("~ the product finished after %.3f ms: speedup %.2f\n", finished * 1e3,
              cpu_time / finished);

  const auto gflops = [&](const torch::Tensor& a, const torch::Tensor& b) {
    const auto work = [&] { torch::matmul(a, b); };
    const double operations = 2.0 * matrix_size * matrix_size * matrix_size;
    return operations / sconce::median_seconds(work, a.device(), /*runs=*/3) / 1e9;
  };
  std::cout << "close to the CPU's: "
            << sconce::repr(z_gpu.cpu().allclose(z_cpu, 1e-5, 1e-2)) << '\n';
  const double cpu_rate = gflops(x, y), gpu_rate = gflops(x_gpu, y_gpu);
  std::printf(
      "~ medians of finished products: CPU %.0f GFLOP/s, %s %.0f GFLOP/s, speedup %.2f\n",
      cpu_rate, x_gpu.device().str().c_str(), gpu_rate, gpu_rate / cpu_rate);
  if (device.is_cpu()) std::cout << "Without a GPU, both products run on the CPU.\n";
}
