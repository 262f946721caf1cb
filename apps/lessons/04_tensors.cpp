// Tensors on a device: where a tensor lies, and making one on the GPU from the start.
// Covers: T0.device T1.x T2.10 T0.X T1.X T2.11 T0.Y T1.Y T2.12
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

int main() {
  torch::manual_seed(0);

  // T0.device, T1.x, T2.10
  auto x = torch::tensor({1, 2, 3});
  std::cout << "Tensor device: " << x.device() << '\n';

  // T0.X, T1.X, T2.11
  // note: T0's labels name a GPU also where the tensor fell back to the CPU; the tensor itself
  // says.
  auto X = torch::ones({2, 3}, try_gpu());
  std::cout << "Tensor X created on GPU: " << repr(X) << '\n';
  if (X.is_cpu())
    std::cout << "There is no GPU: X was created on " << X.device() << ".\n";

  // T0.Y, T2.12
  // On the second GPU, if there is one.
  auto Y = torch::rand({2, 3}, try_gpu(1));
  std::cout << "Tensor Y created on second GPU: " << repr(Y) << '\n';
  if (Y.is_cpu())
    std::cout << "There is no second GPU: Y was created on " << Y.device() << ".\n";

  // T1.Y
  // note: T0 and T2 draw from [0, 1), T1 from the normal distribution; both are shown.
  Y = torch::randn({2, 3}, try_gpu(1));
  std::cout << repr(Y) << '\n';
}
