// Logs the norms of 1000 products, either reading each norm immediately or copying all
// norms at the end.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

int main() {
  torch::manual_seed(0);
  auto device = sconce::try_gpu();

  // T1.E3
  auto A = torch::rand({1000, 100, 100}, device);
  auto B = torch::rand({1000, 100, 100}, device);
  auto read = torch::zeros({1000});
  auto one_by_one = [&] {
    for (int i = 0; i < 1000; ++i)
      read[i] = torch::matmul(A[i], B[i]).norm().item<float>();
  };
  auto log = torch::zeros({1000}, device);
  auto copied = torch::zeros({1000});
  auto kept = [&] {
    for (int i = 0; i < 1000; ++i) log[i] = torch::matmul(A[i], B[i]).norm();
    copied = log.cpu();
  };
  double one_by_one_time = sconce::median_seconds(one_by_one, device, 3);
  double kept_time = sconce::median_seconds(kept, device, 3);
  std::cout << "equal norms: " << sconce::repr(read.equal(copied)) << '\n';
  std::printf("~ one by one: %.2f ms, kept on %s: %.2f ms, ratio %.2f\n",
              one_by_one_time * 1e3, device.str().c_str(), kept_time * 1e3,
              one_by_one_time / kept_time);
  if (device.is_cpu())
    std::cout
        << "Without a GPU, there is nothing to copy: keeping the log saves nothing.\n";

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  torch::Tensor norms;
  auto batched = [&] { norms = torch::bmm(A, B).norm(2, {1, 2}).cpu(); };
  std::printf("~ one batch: %.2f ms\n", sconce::median_seconds(batched, device, 3) * 1e3);
  std::cout << "last norm: " << sconce::repr(copied[999].item<double>()) << '\n';
  std::cout << "close norms: " << sconce::repr(norms.allclose(copied)) << '\n';
}
