// Reading values: printing, item(), a list and a copy all make the host wait for the device.
// Covers: T0.sync T1.print T3.auto
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

using sconce::median_seconds, sconce::repr;

std::vector<float> tolist(const torch::Tensor& X) {
  const auto on_cpu = X.cpu().contiguous();
  return {on_cpu.data_ptr<float>(), on_cpu.data_ptr<float>() + on_cpu.numel()};
}

void beyond(const torch::Tensor& X);

int main() {
  auto X = torch::ones({2, 3}, sconce::try_gpu());

  // T0.sync, T1.print, T3.auto
  // note: Python's print reads a GPU's tensor piece by piece; sconce::repr copies it once.
  std::cout << repr(X) << '\n';
  std::cout << repr(X.sum().item<double>()) << '\n';
  for (const float value : tolist(X)) std::cout << repr(double{value}) << ' ';
  std::cout << '\n' << repr(X.cpu()) << '\n';

  beyond(X);
}

// Beyond the cells: the values are equal, and the time of each way to read them.
void beyond(const torch::Tensor& X) {
  std::cout << "Beyond the cells:\n";
  std::cout << "equal values: "
            << repr(torch::tensor(tolist(X)).view({2, 3}).equal(X.cpu())) << '\n';
  const auto device = X.device();
  std::printf("~ print(X) %.1f us, print(X.cpu()) %.1f us, item() %.1f us, ",
              median_seconds([&] { repr(X); }, device) * 1e6,
              median_seconds([&] { repr(X.cpu()); }, device) * 1e6,
              median_seconds([&] { X[0][0].item<double>(); }, device) * 1e6);
  std::printf("tolist() %.1f us, cpu() %.1f us\n",
              median_seconds([&] { tolist(X); }, device) * 1e6,
              median_seconds([&] { X.cpu(); }, device) * 1e6);
}
