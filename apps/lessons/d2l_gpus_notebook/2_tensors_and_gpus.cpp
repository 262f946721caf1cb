// Creates tensors, copies a tensor to another device, and adds two tensors on the same
// device.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>

int num_gpus() {
  return torch::cuda::device_count();
}

torch::Device try_gpu(int i = 0) {
  if (num_gpus() >= i + 1) return torch::Device("cuda:" + std::to_string(i));
  return torch::Device("cpu");
}

int main() {
  torch::manual_seed(0);

  // T2.10
  auto x = torch::tensor({1, 2, 3});
  std::cout << x.device() << '\n';

  // T2.11
  auto X = torch::ones({2, 3}, try_gpu());
  std::cout << sconce::repr(X) << '\n';

  // T2.12
  auto Y = torch::rand({2, 3}, try_gpu(1));
  std::cout << sconce::repr(Y) << '\n';

  // T2.13
  try {
    X + Y;
  } catch (...) {
    std::cout << "Tensor in " << X.device() << " cannot add with tensor in " << Y.device()
              << '\n';
  }

  // T2.18
  auto Z = X.to(try_gpu(1));
  std::cout << sconce::repr(X) << '\n';
  std::cout << sconce::repr(Z) << '\n';

  // T2.19
  std::cout << sconce::repr(Y + Z) << '\n';

  // T2.22
  std::cout << sconce::repr(Z.to(try_gpu(1)).is_same(Z)) << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  try {
    X + torch::ones({2, 4}, try_gpu());
  } catch (...) {
    std::cout << "Tensor in " << X.device() << " cannot add with tensor in " << X.device()
              << ", says a catch for everything\n";
  }
  try {
    X + torch::ones({2, 4}, try_gpu());
  } catch (const c10::Error& error) {
    std::cout << error.what_without_backtrace() << '\n';
  }
}
