// Multiplies two matrices on the CPU and the GPU, and compares the results.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

int main() {
  torch::manual_seed(0);

  // T3.1
  auto matrix_size = 1000;
  auto x = torch::randn({matrix_size, matrix_size});
  auto y = torch::randn({matrix_size, matrix_size});
  auto z_cpu = torch::matmul(x, y);
  if (torch::cuda::is_available()) {
    auto device = torch::Device("cuda");
    auto x_gpu = x.to(device);
    auto y_gpu = y.to(device);
    auto z_gpu = torch::matmul(x_gpu, y_gpu);
    auto z_cpu_from_gpu = z_gpu.cpu();
    std::cout << sconce::repr(torch::allclose(z_cpu, z_cpu_from_gpu)) << '\n';
  } else {
    std::cout << "GPU not available, computations performed on CPU only.\n";
  }

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  auto other = torch::TensorOptions(torch::kDouble);
  if (torch::cuda::is_available())
    other = torch::TensorOptions("cuda").dtype(torch::kFloat);
  std::cout << (torch::cuda::is_available() ? "CPU and GPU\n" : "float32 and float64\n");
  // TF32 rounds each factor by up to 2^-11 of its value. Each element combines 2,000
  // rounded factors, so its error grows with the square root of 2,000. A tolerance of
  // five times this error covers all one million elements.
  const double tf32 = 5 * std::sqrt(2.0 * matrix_size) * std::exp2(-11);
  for (const char* precision : {"highest", "high"}) {
    at::globalContext().setFloat32MatmulPrecision(precision);
    auto z = torch::matmul(x.to(other), y.to(other)).to(z_cpu.options());
    std::printf("%s: largest difference %.1e\n", precision,
                (z_cpu - z).abs().max().item<double>());
    for (const double atol : {1e-8, 1e-3, tf32})
      std::printf("  allclose with atol=%.0e: %s\n", atol,
                  sconce::repr(torch::allclose(z_cpu, z, /*rtol=*/1e-5, atol)).c_str());
  }
}
