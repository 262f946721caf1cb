// Times copies, many small operations, and three ways of reading a tensor's values.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda:0" : "cpu");
  auto ms = [&](auto work) { return sconce::median_seconds(work, device) * 1e3; };

  // T1.slow
  auto x = torch::randn({2048, 1024});
  auto x_gpu = x.to(device);
  auto x_cpu = x_gpu.cpu();
  std::cout << x.device() << " to " << x_gpu.device() << " and back to " << x_cpu.device()
            << ", " << x.nbytes() << " bytes each way\n";
  std::cout << "same values: " << sconce::repr(x_cpu.equal(x)) << '\n';
  auto to_gpu = [&] { return x.to(device, /*non_blocking=*/false, /*copy=*/true); };
  auto to_cpu = [&] { return x_gpu.to(torch::kCPU, false, /*copy=*/true); };
  auto multiply = [&] { return torch::matmul(x_gpu, x_gpu.t()); };
  std::printf("~ copy to the device: %.3f ms, copy back: %.3f ms\n", ms(to_gpu),
              ms(to_cpu));
  std::printf("~ matrix product on the device: %.3f ms\n", ms(multiply));

  // T1.small
  auto a = torch::randint(10, {1000, 1000}, torch::kFloat).to(device);
  auto b = torch::randint(10, {1000, 1000}, torch::kFloat).to(device);
  auto small = [&] {
    std::vector<torch::Tensor> rows;
    for (int i = 0; i < 1000; ++i) rows.push_back(a[i] + b[i]);
    return rows;
  };
  auto large = [&] { return a + b; };
  std::cout << "same sums: " << sconce::repr(torch::stack(small()).equal(large()))
            << '\n';
  std::printf("~ 1000 small additions: %.3f ms, one large addition: %.3f ms\n", ms(small),
              ms(large));

  // T1.print
  auto X = torch::ones({2, 3}, device);
  std::cout << sconce::repr(X) << '\n';
  std::cout << sconce::repr(X.sum().item<double>()) << '\n';
  auto X_cpu = X.cpu();
  auto data = X_cpu.data_ptr<float>();
  std::cout << sconce::repr(std::vector<float>(data, data + X_cpu.numel())) << '\n';
  std::printf("~ printing: %.4f ms, item(): %.4f ms, cpu(): %.4f ms\n",
              ms([&] { sconce::repr(X); }), ms([&] { X[0][0].item<float>(); }),
              ms([&] { X.cpu(); }));

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  auto copy_rows = [&] {
    for (int i = 0; i < 1000; ++i) a[i].to(torch::kCPU, false, /*copy=*/true);
  };
  std::printf("~ 1000 small copies: %.3f ms, one large copy: %.3f ms\n", ms(copy_rows),
              ms([&] { a.to(torch::kCPU, false, /*copy=*/true); }));
  if (device.is_cuda()) {
    auto pinned = x.pin_memory();
    std::printf("~ copy from pinned memory: %.3f ms\n",
                ms([&] { pinned.to(device, /*non_blocking=*/true); }));
  } else {
    std::cout << "without a GPU, every copy stays in main memory\n";
  }
}
