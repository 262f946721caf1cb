// Tensors on a device: where a tensor lies, and making one on the GPU from the start.
// Covers: T0.device T1.x T2.10 T0.X T1.X T2.11 T0.Y T1.Y T2.12
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

void beyond(const torch::Tensor& X, const torch::Tensor& Y);

int main() {
  torch::manual_seed(0);

  // T0.device, T1.x, T2.10
  auto x = torch::tensor({1, 2, 3});
  std::cout << "Tensor device: " << x.device() << '\n';

  // T0.X, T1.X, T2.11
  auto X = torch::ones({2, 3}, try_gpu());
  std::cout << "Tensor X created on GPU: " << repr(X) << '\n';

  // T0.Y, T2.12
  auto Y = torch::rand({2, 3}, try_gpu(1));
  std::cout << "Tensor Y created on second GPU: " << repr(Y) << '\n';

  // T1.Y
  // note: T0 and T2 draw from [0, 1), T1 from the normal distribution.
  Y = torch::randn({2, 3}, try_gpu(1));
  std::cout << repr(Y) << '\n';

  beyond(X, Y);
}

// Beyond the cells: the labels say GPU also after the fallback; the tensors know better.
void beyond(const torch::Tensor& X, const torch::Tensor& Y) {
  std::cout << "Beyond the cells:\n";
  std::cout << "with " << sconce::num_gpus() << " GPUs X was created on " << X.device()
            << ", Y on " << Y.device() << '\n';
}
