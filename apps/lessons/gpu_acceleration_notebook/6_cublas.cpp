// Shows which operations use cuBLAS, measures Tensor Cores, and prints a product's
// attributes.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

int main() {
  torch::manual_seed(0);
  auto where = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");

  // T3.libs
  auto& context = at::globalContext();
  std::cout << "products on a GPU: " << context.blasPreferredBackend() << '\n';
  if (context.hasCuSOLVER())
    context.setLinalgPreferredBackend(at::LinalgBackend::Cusolver);
  std::cout << "solvers on a GPU: " << context.linalgPreferredBackend() << '\n';
  auto report = [](const char* work) {
    std::stringstream files;  // the files loaded by this process
    files << std::ifstream("/proc/self/maps").rdbuf();
    auto loaded = files.str().find("libtorch_cuda_linalg") != std::string::npos;
    std::cout << "solvers loaded after " << work << ": " << sconce::repr(loaded) << '\n';
  };
  auto symmetric = torch::eye(100, where) * 2;
  torch::matmul(symmetric, symmetric);
  report("a product");
  torch::linalg_solve(symmetric, symmetric);
  torch::linalg_eigvalsh(symmetric);
  report("a solve and eigenvalues");

  // T3.tensor-cores
  std::cout << "TF32 in convolutions: " << sconce::repr(context.allowTF32CuDNN()) << '\n';
  std::cout << "TF32 in products: " << sconce::repr(context.allowTF32CuBLAS()) << '\n';
  const int64_t n = 1024;
  auto thirds = torch::full({n, n}, 1.0 / 3, where);
  auto measure = [&](const char* name, const torch::Tensor& a) {
    auto error = (torch::matmul(a, a).to(torch::kDouble) / (n / 9.0) - 1).abs().max();
    auto seconds =
        sconce::median_seconds([&] { torch::matmul(a, a); }, where, /*runs=*/3);
    std::printf("~ %s: %.0f GFLOP/s, relative error %.1e\n", name,
                2.0 * n * n * n / seconds / 1e9, error.item<double>());
  };
  measure("float32", thirds);
  context.setAllowTF32CuBLAS(true);
  measure("float32 with allow_tf32", thirds);
  context.setAllowTF32CuBLAS(false);
  measure("bfloat16", thirds.to(torch::kBFloat16));

  // T3.8
  auto device = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");  // guard
  auto x = torch::randn({1000, 500}).to(device);
  auto y = torch::randn({500, 200}).to(device);
  auto result = torch::matmul(x, y);
  std::cout << "Shape of the Tensor:  " << sconce::repr(result.sizes()) << '\n';
  std::cout << "Data Type:  " << sconce::repr(result.scalar_type()) << '\n';
  std::cout << "Type:  " << sconce::repr(result.scalar_type()) << '\n';
  std::cout << "requires_grad:  " << sconce::repr(result.requires_grad()) << '\n';
  std::cout << "Is Leaf:  " << sconce::repr(result.is_leaf()) << '\n';
  std::cout << "Device:  " << result.device() << '\n';
  std::cout << "Size:  " << sconce::repr(result.sizes()) << '\n';
  std::cout << "Result:  " << sconce::repr(result.data()) << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  x.requires_grad_();
  result = torch::matmul(x, y);
  std::cout << "requires_grad:  " << sconce::repr(result.requires_grad()) << '\n';
  std::cout << "Is Leaf:  " << sconce::repr(result.is_leaf()) << '\n';
}
