// Moving a tensor: to() returns the copy, and what is added must lie together.
// Covers: T4.tensor T4.check T4.same
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr;

void beyond(const torch::Tensor& tensor, const torch::Tensor& result);

int main() {
  torch::manual_seed(0);

  // T4.tensor
  torch::Device device(torch::cuda::is_available() ? "cuda" : "cpu");
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

  beyond(tensor, result);
}

// Beyond the cells: two names of one GPU, a copy thrown away, and a tensor left behind.
void beyond(const torch::Tensor& tensor, const torch::Tensor& result) {
  std::cout << repr(tensor) << '\n' << repr(result) << '\n';
  // note: "cuda" names the current GPU and "cuda:0" the first, and the two are not equal.
  const torch::Device device(tensor.device().type());
  const bool equal = tensor.device() == device;
  std::cout << tensor.device() << " == " << device << ": " << repr(equal) << '\n';
  tensor.to(torch::kMeta);
  std::cout << "to() without =: " << tensor.device() << '\n';
  std::cout << "plus 3: " << repr((result + torch::tensor(3.f))[0]) << '\n';
  // note: without a GPU a meta tensor, which has no data, is the one left behind. The messages then
  // differ: "Expected all tensors to be on the same device, but found at least two devices, meta
  // and cpu!" in C++, "Tensor on device meta is not on the expected device cpu!" in Python.
  auto left_behind = torch::ones({5, 5}, device.is_cpu() ? torch::kMeta : torch::kCPU);
  try {
    result + left_behind;
  } catch (const c10::Error& error) {
    std::cout << result.device() << " + " << left_behind.device() << ": refused\n";
    if (device.is_cuda()) std::cout << error.msg() << '\n';
  }
}
