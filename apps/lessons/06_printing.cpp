// Reading values: printing, item(), a list and a copy all make the host wait for the device.
// Covers: T0.sync T1.print T3.auto
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

using sconce::median_seconds, sconce::repr, sconce::try_gpu;

std::vector<float> tolist(const torch::Tensor& X) {
  const auto on_cpu = X.cpu().contiguous();
  return {on_cpu.data_ptr<float>(), on_cpu.data_ptr<float>() + on_cpu.numel()};
}

int main() {
  const auto device = try_gpu();
  auto X = torch::ones({2, 3}, device);

  // note: "printing copies to main memory first" is not so. A printed GPU tensor is read piece by
  // piece, 22 scalars for these six in Python; print X.cpu() to copy once. And .numpy() on a GPU
  // tensor raises: nothing is copied for you. What stalls is the wait, not the interpreter's lock.
  std::cout << repr(X) << '\n';
  std::cout << repr(X.cpu()) << '\n';
  std::cout << repr(X.sum().item<double>()) << '\n';
  for (const float value : tolist(X)) std::cout << repr(double{value}) << ' ';
  std::cout << '\n' << repr(X.cpu().equal(torch::ones({2, 3}))) << '\n';

  const auto time = [device](const char* what, const std::function<void()>& work) {
    std::printf("~ %s: %.1f us\n", what, median_seconds(work, device) * 1e6);
  };
  time("print(X)", [&] { repr(X); });
  time("print(X.cpu())", [&] { repr(X.cpu()); });
  time("item()", [&] { X[0][0].item<double>(); });
  time("tolist()", [&] { tolist(X); });
  time("cpu()", [&] { X.cpu(); });
}
