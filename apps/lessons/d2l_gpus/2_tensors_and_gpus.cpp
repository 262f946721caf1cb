// Creates tensors, copies a tensor to another device, and adds two tensors on the same
// device.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>

torch::Device try_gpu(int i = 0) {
  if (torch::cuda::device_count() >= i + 1)
    return torch::Device("cuda:" + std::to_string(i));
  return torch::Device("cpu");
}

void show(const char* when) {
  auto stats = sconce::cuda::memory_stats(sconce::gpu());
  std::cout << when << ": " << stats.allocated << " bytes of tensors on the GPU, "
            << stats.reserved << " reserved\n";
}

int main() {
  torch::manual_seed(0);

  // T1.x
  auto x = torch::tensor({1, 2, 3});
  std::cout << x.device() << '\n';

  // T1.X
  auto X = torch::ones({2, 3}, try_gpu());
  std::cout << sconce::repr(X) << '\n';

  // T1.memory
  show("with X");
  auto big = torch::empty({64, 1024, 1024}, try_gpu());
  show("with big");
  big = torch::Tensor();
  show("without big");
  sconce::cuda::empty_cache();
  show("with an empty cache");

  // T1.Y
  auto Y = torch::randn({2, 3}, try_gpu(1));
  std::cout << sconce::repr(Y) << '\n';

  // T1.XY
  try {
    X + Y;
    std::cout << "X and Y are both on " << X.device() << ", so X + Y works\n";
  } catch (const c10::Error&) {
    std::cout << "X is on " << X.device() << ", Y is on " << Y.device()
              << ", so X + Y fails\n";
  }

  // T1.Z
  auto Z = X.to(try_gpu(1));
  std::cout << sconce::repr(X) << '\n';
  std::cout << sconce::repr(Z) << '\n';

  // T1.YZ
  std::cout << sconce::repr(Y + Z) << '\n';

  // T1.is
  std::cout << sconce::repr(Z.to(try_gpu(1)).is_same(Z)) << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  try {
    X + torch::ones({2, 3}, torch::Device("meta"));
  } catch (const c10::Error&) {
    std::cout << "X is on " << X.device() << ", so adding a tensor on meta fails\n";
  }
  try {
    torch::empty(int64_t{1} << 48, try_gpu());
  } catch (const c10::Error&) {
    std::cout << "a pebibyte does not fit on " << try_gpu() << '\n';
  }
  Z = X;
  std::cout << "after Z = X, Z is X: " << sconce::repr(Z.is_same(X)) << '\n';
}
