// The libraries below: which of them the build links, and which LibTorch takes for what.
// Covers: T3.libs
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/Version.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/Normalization.h>
#include <cstdlib>
#include <fstream>
#include <iostream>

// Returns the value that LibTorch was built with under this name.
std::string built_with(const std::string& name) {
  const std::string config = at::show_config();
  const size_t at = config.find(name + "=");
  if (at == std::string::npos) return "none";
  const size_t begin = at + name.size() + 1;
  return config.substr(begin, config.find(',', begin) - begin);
}

// Returns the file of the library that this process has loaded.
std::string loaded(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::string file = line.substr(line.rfind('/') + 1);
    if (file.starts_with(library + ".so")) return file;
  }
  return "none";
}

std::string convolution(const torch::Tensor& x, const torch::Tensor& weight) {
  using at::native::ConvBackend;
  const std::vector<c10::SymInt> zero = {0, 0}, one = {1, 1};
  const auto backend =
      at::native::select_conv_backend(x, weight, {}, one, zero, one, false, zero, 1, {});
  return backend == ConvBackend::Cudnn    ? "Cudnn"
         : backend == ConvBackend::Mkldnn ? "Mkldnn"
         : backend == ConvBackend::Slow2d ? "Slow2d"
                                          : "another";
}

int main() {
  // T3.libs
  for (const char* name : {"CUDA_VERSION", "CUDNN_VERSION", "BLAS_INFO", "LAPACK_INFO"}) {
    std::cout << "built with " << name << ": " << built_with(name) << '\n';
  }
  for (const char* library : {"libcudnn", "libcublas", "libcublasLt"}) {
    std::cout << "linked: " << library << ": " << loaded(library) << '\n';
  }

  const auto device = sconce::try_gpu();
  auto x = torch::rand({2, 3, 8, 8}, device), weight = torch::rand({4, 3, 3, 3}, device);
  auto ones = torch::ones({3}, device);
  auto& context = at::globalContext();
  std::cout << "convolution on this machine: " << convolution(x, weight) << '\n';
  const auto normalisation = at::native::_select_batch_norm_backend(
      x, ones, ones, ones, ones, /*training=*/true, 1e-5);
  const bool by_cudnn = normalisation == at::native::BatchNormBackend::Cudnn;
  std::cout << "normalisation on this machine: " << (by_cudnn ? "Cudnn" : "Native")
            << '\n';
  context.setUserEnabledCuDNN(false), context.setUserEnabledMkldnn(false);
  std::cout << "convolution without these libraries: " << convolution(x, weight) << '\n';

  // note: the text counts pooling and activations among cuDNN's, and eigenvalues among cuBLAS'. For
  // pooling and activations LibTorch has kernels of its own and no choice to report; eigenvalues
  // are cuSOLVER's, or MAGMA's where the build has it. Names of operators would prove nothing.
  std::cout << "products on a GPU: "
            << at::BlasBackendToString(context.blasPreferredBackend()) << '\n';
  std::cout << "eigenvalues on a GPU: "
            << at::LinalgBackendToString(context.linalgPreferredBackend()) << '\n';
  // The memory that cuBLAS may use beside the matrices: if it is fixed, results repeat.
  const char* workspace = std::getenv("CUBLAS_WORKSPACE_CONFIG");
  std::cout << "cuBLAS' workspace: "
            << (workspace != nullptr ? workspace : "LibTorch's choice") << '\n';
}
