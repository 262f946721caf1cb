// A product on two devices: nearly equal, and how near is what the tolerance has to say.
// Covers: T3.1
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

using sconce::repr;

void beyond(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& z_cpu);

int main() {
  torch::manual_seed(0);

  // T3.1
  const int64_t matrix_size = 1000;
  auto x = torch::randn({matrix_size, matrix_size});
  auto y = torch::randn({matrix_size, matrix_size});
  auto z_cpu = torch::matmul(x, y);
  if (torch::cuda::is_available()) {
    auto x_gpu = x.to(torch::kCUDA);
    auto y_gpu = y.to(torch::kCUDA);
    auto z_gpu = torch::matmul(x_gpu, y_gpu);
    auto z_cpu_from_gpu = z_gpu.to(torch::kCPU);
    std::cout << repr(torch::allclose(z_cpu, z_cpu_from_gpu)) << '\n';
  } else {
    std::cout << "GPU not available, computations performed on CPU only.\n";
  }

  beyond(x, y, z_cpu);
}

// Beyond the cell: the largest difference, and the tolerance that fits.
void beyond(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& z_cpu) {
  // note: T3 prints False where its comment says True. The default tolerances, rtol 1e-5 and atol
  // 1e-8, are too tight for sums of a thousand products: those that come out near 0 fail.
  const auto device = sconce::try_gpu();
  const auto other =
      device.is_cpu() ? x.options().dtype(torch::kDouble) : x.options().device(device);
  std::cout << (device.is_cpu() ? "float32 against float64\n" : "CPU against GPU\n");
  // note: on a GPU, "high" lets products round their factors to TF32, with ten bits of fraction: by
  // up to 2^-11 of their size. Errors of so many products add up as the square root of their
  // number; the tolerance is five times that, so that the largest of a million sums fits. On a CPU
  // without such a unit "high" changes nothing. Float32 rounds its sums, for which 1e-3 is enough.
  const double tf32 = 5 * std::sqrt(static_cast<double>(2 * x.size(1))) * std::exp2(-11);
  for (const char* precision : {"highest", "high"}) {
    const sconce::backends::FlagsGuard guard({.float32_matmul_precision = precision});
    auto z = torch::matmul(x.to(other), y.to(other)).to(z_cpu.options());
    std::printf("%s: largest difference %.1e\n", precision,
                (z_cpu - z).abs().max().item<double>());
    for (const double atol : {1e-8, 1e-3, tf32})
      std::printf("  allclose with atol %.0e: %s\n", atol,
                  repr(torch::allclose(z_cpu, z, /*rtol=*/1e-5, atol)).c_str());
  }
}
