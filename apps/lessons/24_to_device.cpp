// Moving a tensor: to() returns the copy, and what is added must lie together.
// Covers: T4.tensor T4.check T4.same
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr;

int main() {
  torch::manual_seed(0);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  auto tensor = torch::randn({5, 5}).to(device);
  std::cout << repr(tensor) << '\n';

  // note: "cuda" names the current GPU and "cuda:0" the first, and the two are not equal.
  std::cout << tensor.device() << ' ' << device << ' ' << repr(tensor.device() == device) << '\n';

  // A `to` whose result is thrown away leaves the tensor where it was.
  auto stays = torch::ones({2});
  stays.to(device);
  std::cout << stays.device() << '\n';

  // The same choice by if and else.
  if (torch::cuda::is_available()) {
    device = torch::Device("cuda");
  } else {
    device = torch::Device("cpu");
  }
  std::cout << device << '\n';

  // Two tensors on one device are added; so is a number in a tensor of no dimensions, from
  // anywhere.
  auto a = torch::ones({2}, device), b = torch::full({2}, 2.f, device);
  std::cout << repr(a + b) << '\n';
  std::cout << repr(a + torch::tensor(3.f)) << '\n';

  // One that is left behind on the CPU is not.
  try {
    a + torch::ones({2});
    std::cout << "both are on " << a.device() << ": nothing was left behind\n";
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    std::cout << message.substr(0, message.find('\n')) << '\n';
  }
}
