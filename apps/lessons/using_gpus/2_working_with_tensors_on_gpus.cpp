// Creates tensors on the CPU and on two GPUs, copies a tensor from one GPU to the
// other, and adds tensors on the same GPU.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>

int main() {
  auto gpu = [](int i = 0) { return torch::Device("cuda:" + std::to_string(i)); };
  auto num_gpus = [] { return int{torch::cuda::device_count()}; };
  auto try_gpu = [&](int i = 0) { return num_gpus() >= i + 1 ? gpu(i) : torch::kCPU; };
  torch::manual_seed(0);

  // T0.device
  auto x = torch::tensor({1, 2, 3});
  std::cout << "Tensor device: " << x.device() << '\n';

  // T0.X
  auto X = torch::ones({2, 3}, try_gpu());
  std::cout << "Tensor X created on GPU: " << sconce::repr(X) << '\n';

  // T0.Y
  auto Y = torch::rand({2, 3}, try_gpu(1));
  std::cout << "Tensor Y created on second GPU: " << sconce::repr(Y) << '\n';

  // T0.Z
  auto Z = num_gpus() > 1 ? X.to(gpu(1)) : X;
  std::cout << "Original X device: " << X.device() << '\n';
  std::cout << "Copied Z device: " << Z.device() << '\n';

  // T0.YZ
  if (num_gpus() > 1) {
    auto result = Y + Z;
    std::cout << "Y + Z = " << sconce::repr(result) << '\n';
  }

  // T0.is
  auto same = X.to(X.device());
  std::cout << "to its own device, the original: " << sconce::repr(same.is_same(X))
            << '\n';
  auto clone = X.clone();
  std::cout << "clone(), the original: " << sconce::repr(clone.is_same(X)) << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << "with " << num_gpus() << " GPUs, X is on " << X.device() << " and Y on "
            << Y.device() << '\n';
  std::cout << "Z is X: " << sconce::repr(Z.is_same(X)) << '\n';
  try {
    auto sum = X + Y;
    std::cout << "X + Y is on " << sum.device() << '\n';
  } catch (const c10::Error&) {
    std::cout << "X + Y fails: they are on different devices\n";
  }
}
