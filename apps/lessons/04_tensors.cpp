// Tensors on a device: where a tensor lies, and making one on the GPU from the start.
// Covers: T0.device T1.x T2.10 T0.X T1.X T2.11 T0.Y T1.Y T2.12
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

int main() {
  torch::manual_seed(0);

  auto x = torch::tensor({1, 2, 3});
  std::cout << x.device() << '\n';

  // note: T0 labels X "on GPU" even where it fell back to the CPU; the tensor itself says.
  auto X = torch::ones({2, 3}, try_gpu());
  std::cout << repr(X) << '\n';

  // On the second GPU, if there is one.
  // note: T0 and T2 draw from [0, 1), T1 from the normal distribution; both are shown.
  auto Y = torch::rand({2, 3}, try_gpu(1));
  std::cout << repr(Y) << '\n';
  Y = torch::randn({2, 3}, try_gpu(1));
  std::cout << repr(Y) << '\n';
  if (sconce::num_gpus() < 2) std::cout << "With two GPUs X and Y would lie on two of them.\n";
}
