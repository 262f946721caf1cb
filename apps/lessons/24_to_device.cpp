// Moving a tensor: to() returns the copy, and what is added must lie together.
// Covers: T4.tensor T4.check T4.same
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr;

int main() {
  torch::manual_seed(0);
  // T4.tensor
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  auto tensor = torch::randn({5, 5}).to(device);

  // T4.check
  if (torch::cuda::is_available()) {
    device = torch::Device("cuda");
  } else {
    device = torch::Device("cpu");
  }

  // T4.same
  auto tensor1 = torch::randn({5, 5}).to(device);
  auto tensor2 = torch::randn({5, 5}).to(device);
  auto result = tensor1 + tensor2;

  std::cout << "Beyond the cells:\n";
  std::cout << repr(tensor) << '\n';
  // note: "cuda" names the current GPU and "cuda:0" the first, and the two are not equal.
  std::cout << tensor.device() << ' ' << device << ' ' << repr(tensor.device() == device)
            << '\n';
  std::cout << repr(result) << '\n';

  // A `to` whose result is thrown away leaves the tensor where it was.
  auto stays = torch::ones({2});
  stays.to(device);
  std::cout << stays.device() << '\n';

  // A number in a tensor of no dimensions is added from anywhere; other tensors are not.
  std::cout << repr((tensor1 + torch::tensor(3.f))[0]) << '\n';
  // note: without a GPU nothing can be left behind; a meta tensor, which has no data, stands for
  // it. Its error reads "Expected all tensors to be on the same device, but found at least two
  // devices, meta and cpu!" in C++ and "Tensor on device meta is not on the expected device cpu!"
  // in Python.
  auto left_behind = torch::ones({5, 5}, device.is_cpu() ? torch::kMeta : torch::kCPU);
  try {
    tensor1 + left_behind;
  } catch (const c10::Error& error) {
    std::cout << tensor1.device() << " and " << left_behind.device() << " do not add\n";
    const std::string message = error.what_without_backtrace();
    if (!device.is_cpu()) std::cout << message.substr(0, message.find('\n')) << '\n';
  }
}
