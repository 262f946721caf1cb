// A product on two devices: nearly equal, and how near is what the tolerance has to say.
// Covers: T3.1
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::repr;

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto A = torch::randn({1000, 1000}), B = torch::randn({1000, 1000});
  auto on_cpu = torch::matmul(A, B);
  std::cout << (device.is_cpu() ? "float32 against float64" : "CPU against GPU") << '\n';

  // note: T3 prints False where its comment says True. The default tolerances, rtol 1e-5 and atol
  // 1e-8, are too tight for sums of a thousand products: those that come out near 0 fail.
  // note: on a GPU, "high" lets products round their factors to TF32, with ten bits of fraction; on
  // the CPU it changes nothing where there is no such unit.
  for (const char* precision : {"highest", "high"}) {
    at::globalContext().setFloat32MatmulPrecision(precision);
    auto other = device.is_cpu() ? torch::matmul(A.to(torch::kDouble), B.to(torch::kDouble))
                                 : torch::matmul(A.to(device), B.to(device));
    other = other.to(on_cpu.options());
    std::cout << "precision " << precision << '\n';
    std::cout << "  allclose: " << repr(torch::allclose(on_cpu, other)) << '\n';
    std::printf("  largest difference: %.1e\n", (on_cpu - other).abs().max().item<double>());
    std::cout << "  allclose with atol 1e-3: "
              << repr(torch::allclose(on_cpu, other, /*rtol=*/1e-5, /*atol=*/1e-3)) << '\n';
  }
}
