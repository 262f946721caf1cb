// Copying between devices: tensors are added where both lie, and moving there is up to you.
// Covers: T2.13 T0.Z T1.Z T2.18 T0.YZ T1.YZ T2.19 T1.is T2.22
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::gpu, sconce::num_gpus, sconce::repr, sconce::try_gpu;

void beyond(const torch::Tensor& X, const torch::Tensor& Y);

int main() {
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());
  auto Y = torch::rand({2, 3}, try_gpu(1));

  // T2.13
  // note: T2 catches every exception, with a bare except. Without a GPU nothing fails here.
  try {
    X + Y;
  } catch (const c10::Error&) {
    std::cout << "Tensor in " << X.device() << " cannot add with tensor in " << Y.device()
              << '\n';
  }

  // T0.Z
  auto Z = num_gpus() > 1 ? X.to(gpu(1)) : X;
  std::cout << "Original X device: " << X.device() << '\n';
  std::cout << "Copied Z device: " << Z.device() << '\n';

  // T1.Z, T2.18
  // note: T1 and T2 call X.cuda(1), which fails without a second GPU; try_gpu(1) is where Y is.
  Z = X.to(try_gpu(1));
  std::cout << repr(X) << '\n';
  std::cout << repr(Z) << '\n';

  // T0.YZ
  if (num_gpus() > 1) {
    auto result = Y + Z;
    std::cout << "Y + Z = " << repr(result) << '\n';
  }

  // T1.YZ, T2.19
  std::cout << repr(Y + Z) << '\n';

  // T1.is, T2.22
  std::cout << repr(Z.to(try_gpu(1)).is_same(Z)) << '\n';

  beyond(X, Y);
}

// Beyond the cells: a sum that fails everywhere, Z = X without a copy, and X.cuda(1).
// note: of tensors on cpu and meta the error's words differ, and are not shown. Python: "Tensor on
// device meta is not on the expected device cpu!"; C++: "Expected all tensors to be on the same
// device, but found at least two devices, meta and cpu!".
void beyond(const torch::Tensor& X, const torch::Tensor& Y) {
  std::cout << "Beyond the cells:\n";
  const auto there = X.device() == Y.device() ? torch::ones({2, 3}, torch::kMeta) : Y;
  try {
    X + there;
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    std::cout << "Tensor in " << X.device() << " cannot add with tensor in "
              << there.device() << '\n';
    if (!there.is_meta()) std::cout << message.substr(0, message.find('\n')) << '\n';
  }
  auto Z = X;
  std::cout << "after Z = X, Z is X: " << repr(Z.is_same(X)) << '\n';
  try {
    const auto copy = X.to(gpu(1));
    std::cout << "X.cuda(1) is on " << copy.device() << '\n';
  } catch (const c10::Error&) {
    std::cout << "X.cuda(1) fails with " << num_gpus() << " GPUs\n";
  }
}
