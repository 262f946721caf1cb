// Many small operations against one large: every call has a price, on the GPU most of all.
// Covers: T0.batch T1.small
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

using sconce::median_seconds, sconce::repr;

void beyond(const torch::Tensor& a);

int main() {
  torch::manual_seed(0);
  auto a = torch::randint(10, {1000, 1000}, torch::kFloat).to(sconce::try_gpu());
  auto b = torch::randint(10, {1000, 1000}, torch::kFloat).to(sconce::try_gpu());

  // T0.batch, T1.small
  const auto small = [&] {
    std::vector<torch::Tensor> rows(1000);
    for (int i = 0; i < 1000; ++i) rows[i] = a[i] + b[i];
    return rows;
  };
  const auto large = [&] { return a + b; };
  std::cout << "equal sums: " << repr(torch::stack(small()).equal(large())) << '\n';
  std::printf("~ additions: 1000 small %.3f ms, one large %.3f ms\n",
              median_seconds(small, a.device()) * 1e3,
              median_seconds(large, a.device()) * 1e3);

  beyond(a);
}

// Beyond the cells: the same for copies to the CPU.
void beyond(const torch::Tensor& a) {
  const auto copy = [](const torch::Tensor& x) {
    return x.to(torch::kCPU, x.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  };
  const auto small = [&] {
    std::vector<torch::Tensor> rows(1000);
    for (int i = 0; i < 1000; ++i) rows[i] = copy(a[i]);
    return rows;
  };
  const auto large = [&] { return copy(a); };
  std::cout << "Beyond the cells:\nequal copies: "
            << repr(torch::stack(small()).equal(large())) << '\n';
  std::cout << "sum on " << a.device() << ": " << repr(a.sum().item<double>()) << '\n';
  std::printf("~ copies: 1000 small %.3f ms, one large %.3f ms\n",
              median_seconds(small, a.device()) * 1e3,
              median_seconds(large, a.device()) * 1e3);
}
