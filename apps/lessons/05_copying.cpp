// Copying between devices: tensors are added where both lie, and moving there is up to you.
// Covers: T2.13 T0.Z T1.Z T2.18 T0.YZ T1.YZ T2.19 T1.is T2.22
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

// Adds the two and tells of the error, if there is one.
void try_to_add(const torch::Tensor& X, const torch::Tensor& Y) {
  try {
    X + Y;
    std::cout << "X + Y works: both are on " << X.device() << '\n';
  } catch (const c10::Error& error) {
    std::cout << "X is on " << X.device() << " and Y on " << Y.device() << ": no sum\n";
    const std::string message = error.what_without_backtrace();
    if (!Y.is_meta()) std::cout << message.substr(0, message.find('\n')) << '\n';
  }
}

int main() {
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());
  auto Y = torch::rand({2, 3}, try_gpu(1));

  // note: T2 catches every exception, with a bare except. With one GPU the sum does fail, for Y
  // fell back to the CPU; without any, nothing fails, so a tensor on another kind of device, meta,
  // is added as well. Its error's words are not shown, for they differ. Python: "Tensor on device
  // meta is not on the expected device cpu!"; C++: "Expected all tensors to be on the same device,
  // but found at least two devices, meta and cpu!".
  try_to_add(X, Y);
  try_to_add(X, torch::ones({2, 3}, torch::kMeta));

  // note: T1 and T2 call X.cuda(1), which fails without a second GPU. T0 falls back to Z = X, so
  // that Z is not where Y is if there is one GPU. A copy to try_gpu(1) is always where Y is.
  auto Z = X.to(try_gpu(1));
  std::cout << repr(X) << '\n' << repr(Z) << '\n';
  std::cout << X.device() << ' ' << Z.device() << '\n';
  std::cout << repr(Y + Z) << '\n';

  // What is there already is not copied: `to` returns the same tensor.
  std::cout << repr(Z.to(try_gpu(1)).is_same(Z)) << '\n';
}
