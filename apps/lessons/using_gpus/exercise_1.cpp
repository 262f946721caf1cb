// Multiplies matrices of four sizes on the CPU and the GPU, with and without copies.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

int main() {
  torch::manual_seed(0);
  auto device = sconce::try_gpu();

  // T0.E1
  int wins_from = 0;
  for (int n : {4, 64, 256, 1024}) {
    auto x = torch::randn({n, n}), y = torch::randn({n, n});
    auto x_gpu = x.to(device), y_gpu = y.to(device);
    auto on_cpu = [&] { return torch::matmul(x, y); };
    auto on_gpu = [&] { return torch::matmul(x_gpu, y_gpu); };
    auto with_copies = [&] { return torch::matmul(x.to(device), y.to(device)).cpu(); };

    double cpu_time = sconce::median_seconds(on_cpu);
    double gpu_time = sconce::median_seconds(on_gpu, device);
    double whole_time = sconce::median_seconds(with_copies, device);
    std::cout << "n = " << n
              << ": z[0][1] = " << sconce::repr(on_cpu()[0][1].item<double>())
              << " on the CPU, " << sconce::repr(on_gpu()[0][1].item<double>()) << " on "
              << device << '\n';
    std::printf("~ CPU %.3f ms, %s %.3f ms, with copies %.3f ms\n", cpu_time * 1e3,
                device.str().c_str(), gpu_time * 1e3, whole_time * 1e3);
    std::printf("~ %.2f GFLOP/s, copies take %.0f%% of the total time\n",
                2e-9 * n * n * n / gpu_time, 100 * (1 - gpu_time / whole_time));
    if (whole_time > cpu_time)
      wins_from = 0;
    else if (wins_from == 0)
      wins_from = n;
  }
  if (device.is_cpu())
    std::cout << "There is no GPU here, so the CPU is compared with itself.\n";
  else
    std::cout << "~ with copies, the GPU wins from n = " << wins_from << " (0: never)\n";
}
