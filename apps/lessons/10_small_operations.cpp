// Many small operations against one large: every call has a price, on the GPU most of all.
// Covers: T0.batch T1.small
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

using sconce::median_seconds, sconce::repr;

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto a = torch::rand({1000, 1000}, device);
  auto b = torch::rand({1000, 1000}, device);

  // A thousand additions of a thousand numbers, or one of a million.
  const auto add_rows = [&] {
    std::vector<torch::Tensor> rows(1000);
    for (int i = 0; i < 1000; ++i) rows[i] = a[i] + b[i];
    return rows;
  };
  std::cout << "equal sums: " << repr(torch::stack(add_rows()).equal(a + b)) << '\n';
  std::printf("~ 1000 small additions: %.3f ms\n", median_seconds(add_rows, device) * 1e3);
  std::printf("~ one large addition: %.3f ms\n", median_seconds([&] { a + b; }, device) * 1e3);

  // The same for copies to the CPU.
  const auto copy = [](const torch::Tensor& x) {
    return x.to(x.options().device(torch::kCPU), /*non_blocking=*/false, /*copy=*/true);
  };
  const auto copy_rows = [&] {
    std::vector<torch::Tensor> rows(1000);
    for (int i = 0; i < 1000; ++i) rows[i] = copy(a[i]);
    return rows;
  };
  std::cout << "equal copies: " << repr(torch::stack(copy_rows()).equal(copy(a))) << '\n';
  std::printf("~ 1000 small copies: %.3f ms\n", median_seconds(copy_rows, device) * 1e3);
  std::printf("~ one large copy: %.3f ms\n", median_seconds([&] { copy(a); }, device) * 1e3);
}
