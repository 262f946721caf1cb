// Copying between devices: tensors are added where both lie, and moving there is up to you.
// Covers: T2.13 T0.Z T1.Z T2.18 T0.YZ T1.YZ T2.19 T1.is T2.22
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

// Adds the two; returns the error's first line, or nothing where there is none.
std::string try_to_add(const torch::Tensor& X, const torch::Tensor& Y) {
  try {
    X + Y;
    std::cout << "The sum works: both tensors are in " << X.device() << '\n';
    return "";
  } catch (const c10::Error& error) {
    std::cout << "Tensor in " << X.device() << " cannot add with tensor in " << Y.device()
              << '\n';
    const std::string message = error.what_without_backtrace();
    return message.substr(0, message.find('\n')) + '\n';
  }
}

int main() {
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());
  auto Y = torch::rand({2, 3}, try_gpu(1));

  // T2.13
  // note: T2 catches every exception, with a bare except. With one GPU the sum does fail, for Y
  // fell back to the CPU; without any, nothing fails, so a tensor on another kind of device, meta,
  // is added as well.
  const auto message = try_to_add(X, Y);
  if (X.device() == Y.device()) try_to_add(X, torch::ones({2, 3}, torch::kMeta));

  // T0.Z
  // note: T0 falls back to Z = X, which is another name and no copy.
  auto Z = sconce::num_gpus() > 1 ? X.to(torch::Device("cuda:1")) : X;
  std::cout << "Original X device: " << X.device() << '\n';
  std::cout << "Copied Z device: " << Z.device() << '\n';
  if (Z.is_same(X)) std::cout << "Nothing was copied: Z is X.\n";

  // T1.Z, T2.18
  // note: T1 and T2 call X.cuda(1), which fails without a second GPU. A copy to try_gpu(1) is where
  // Y is, in each case.
  try {
    Z = X.to(torch::Device("cuda:1"));
  } catch (const c10::Error&) {
    std::cout << "X.cuda(1) fails with " << sconce::num_gpus() << " GPUs\n";
    Z = X.to(try_gpu(1));
  }
  std::cout << repr(X) << '\n' << repr(Z) << '\n';

  auto result = Y + Z;  // T0.YZ
  if (sconce::num_gpus() > 1) std::cout << "Y + Z = " << repr(result) << '\n';
  std::cout << repr(Y + Z) << '\n';  // T1.YZ, T2.19

  // T1.is, T2.22
  // What is there already is not copied: `to` returns the same tensor.
  std::cout << repr(Z.to(try_gpu(1)).is_same(Z)) << '\n';

  // note: of tensors on cpu and meta the error's words are not shown, for they differ. Python:
  // "Tensor on device meta is not on the expected device cpu!"; C++: "Expected all tensors to be on
  // the same device, but found at least two devices, meta and cpu!".
  std::cout << "Beyond the cells:\n" << message;
  auto copy = X.to(X.device(), X.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  std::cout << "a copy where X is: " << repr(copy.equal(X))
            << ", X itself: " << repr(copy.is_same(X)) << '\n';
}
