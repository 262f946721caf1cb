// A product on two devices: nearly equal, and how near is what the tolerance has to say.
// Covers: T3.1
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

using sconce::repr;

int main() {
  torch::manual_seed(0);
  // T3.1
  const int64_t matrix_size = 1000;
  auto x = torch::randn({matrix_size, matrix_size});
  auto y = torch::randn({matrix_size, matrix_size});
  auto z_cpu = torch::matmul(x, y);
  const auto device = sconce::try_gpu();
  if (torch::cuda::is_available()) {
    auto x_gpu = x.to(device), y_gpu = y.to(device);
    auto z_gpu = torch::matmul(x_gpu, y_gpu);
    auto z_cpu_from_gpu = z_gpu.cpu();
    // note: T3 prints False where its comment says True. The default tolerances, rtol 1e-5 and atol
    // 1e-8, are too tight for sums of a thousand products: those that come out near 0 fail.
    std::cout << repr(torch::allclose(z_cpu, z_cpu_from_gpu)) << '\n';
  } else {
    std::cout << "GPU not available, computations performed on CPU only.\n";
  }
  std::cout << "Beyond the cells:\n";
  std::cout << (device.is_cpu() ? "float32 against float64" : "CPU against GPU") << '\n';

  // note: on a GPU, "high" lets products round their factors to TF32, with ten bits of fraction: by
  // up to 2^-11 of their size. Errors of so many products add up as the square root of their
  // number; the tolerance is five times that, so that the largest of a million sums fits. On a CPU
  // without such a unit "high" changes nothing. Float32 rounds its sums, for which 1e-3 is enough.
  const double tf32 = 5 * std::sqrt(2. * matrix_size) * std::exp2(-11);
  for (const char* precision : {"highest", "high"}) {
    at::globalContext().setFloat32MatmulPrecision(precision);
    auto other = device.is_cpu()
                     ? torch::matmul(x.to(torch::kDouble), y.to(torch::kDouble))
                     : torch::matmul(x.to(device), y.to(device));
    other = other.to(z_cpu.options());
    std::cout << "precision " << precision << '\n';
    std::cout << "  allclose: " << repr(torch::allclose(z_cpu, other)) << '\n';
    std::printf("  largest difference: %.1e\n",
                (z_cpu - other).abs().max().item<double>());
    for (const double atol : {1e-3, tf32}) {
      std::printf("  allclose with atol %.3f: %s\n", atol,
                  repr(torch::allclose(z_cpu, other, /*rtol=*/1e-5, atol)).c_str());
    }
  }
}
