// Measures the effect of three best practices: batching, synchronization, and memory.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda:0" : "cpu");

  // T0.batch
  auto a = torch::randint(10, {1000, 1000}, torch::kFloat).to(device);
  auto b = torch::randint(10, {1000, 1000}, torch::kFloat).to(device);
  auto small = [&] {
    std::vector<torch::Tensor> rows;
    for (int i = 0; i < 1000; ++i) rows.push_back(a[i] + b[i]);
    return rows;
  };
  auto large = [&] { return a + b; };
  std::cout << "equal sums: " << sconce::repr(torch::stack(small()).equal(large()))
            << '\n';
  std::printf("~ 1000 small additions %.3f ms, one large %.3f ms\n",
              sconce::median_seconds(small, device) * 1e3,
              sconce::median_seconds(large, device) * 1e3);

  // T0.sync
  auto X = torch::ones({2, 3}, device);
  std::cout << sconce::repr(X) << '\n';
  std::cout << sconce::repr(X.sum().item<double>()) << '\n';
  auto add = [&](int print_every) {
    auto Z = X;
    for (int i = 1; i <= 100; ++i) {
      Z = Z + 1;
      if (i % print_every == 0) sconce::repr(Z);
    }
  };
  std::printf("~ 100 additions: printed once %.3f ms, each time %.3f ms\n",
              sconce::median_seconds([&] { add(100); }, device) * 1e3,
              sconce::median_seconds([&] { add(1); }, device) * 1e3);

  // T0.memory
  auto show = [](const char* when) {
    auto stats = sconce::cuda::memory_stats(sconce::gpu());
    std::cout << when << ": " << stats.allocated << " bytes of tensors, "
              << stats.reserved << " reserved\n";
  };
  a = b = X = torch::Tensor();
  sconce::cuda::empty_cache();
  show("before");
  X = torch::ones({2, 3}, device);
  show("with 2x3 numbers");
  auto big = torch::empty({64, 1024, 1024}, device);
  show("with 256 MiB more");
  X = big = torch::Tensor();
  show("without them");
  sconce::cuda::empty_cache();
  show("with an empty cache");
  if (device.is_cpu()) std::cout << "All figures are 0, because there is no GPU.\n";

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  try {
    torch::empty({int64_t{1} << 50}, torch::device(device).dtype(torch::kByte));
  } catch (const c10::Error&) {
    std::cout << device << " refuses a tensor of one pebibyte\n";
  }
}
