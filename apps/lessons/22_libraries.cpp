// The libraries below: which of them the build links, and which LibTorch takes for what.
// Covers: T3.libs
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/Version.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/Normalization.h>
#include <cstdlib>
#include <iostream>
#include <regex>

using at::native::BatchNormBackend, at::native::ConvBackend, sconce::repr;

void beyond();

int main() {
  // T3.libs
  // note: the text counts pooling and activations among cuDNN's. LibTorch has kernels of its own for
  // them, so there is no choice that it could report; names of operators prove nothing. It counts
  // eigenvalues among cuBLAS': they are cuSOLVER's, or MAGMA's in a build that has it.
  auto x = torch::rand({2, 3, 8, 8}, sconce::try_gpu());
  auto weight = torch::rand({4, 3, 3, 3}, x.device());
  auto ones = torch::ones({3}, x.device());
  auto convolution = at::native::select_conv_backend(
      x, weight, /*bias=*/{}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1, {});
  auto normalization =
      at::native::_select_batch_norm_backend(x, ones, ones, ones, ones, true, 1e-5);
  auto products = at::globalContext().blasPreferredBackend();
  auto eigenvalues = at::globalContext().linalgPreferredBackend();

  std::cout << "convolution by cuDNN: " << repr(convolution == ConvBackend::Cudnn)
            << "\nconvolution by oneDNN: " << repr(convolution == ConvBackend::Mkldnn)
            << "\nnormalization by cuDNN: "
            << repr(normalization == BatchNormBackend::Cudnn)
            << "\nproducts on a GPU: " << at::BlasBackendToString(products)
            << "\neigenvalues on a GPU: " << at::LinalgBackendToString(eigenvalues)
            << '\n';

  beyond();
}

// Beyond the cells: what the build links, and the memory that cuBLAS may use beside the matrices.
void beyond() {
  const std::string config = at::show_config();
  for (const std::string name :
       {"CUDA_VERSION", "CUDNN_VERSION", "BLAS_INFO", "LAPACK_INFO"}) {
    std::smatch found;
    std::regex_search(config, found, std::regex(name + "=([^,]*)"));
    std::cout << name << ": " << (found.empty() ? "none" : found.str(1)) << '\n';
  }
  const char* workspace = std::getenv("CUBLAS_WORKSPACE_CONFIG");
  std::cout << "cuBLAS' workspace: " << (workspace ? workspace : "LibTorch's choice")
            << '\n';
}
