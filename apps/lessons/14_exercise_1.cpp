// Exercise 1: products of small and large matrices, on the CPU and on the GPU.
// Covers: T0.E1 T1.E1
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

// One measured product: its time, with the transfers there and back and without.
struct Row {
  torch::Device device;
  int64_t n;
  double seconds;
  double seconds_with_transfers;
  double rate() const { return 2. * n * n * n / seconds; }  // FLOP/s
};

Row measure(torch::Device device, int64_t n) {
  torch::manual_seed(0);
  auto a = torch::rand({n, n}), b = torch::rand({n, n});
  auto c = a.to(device), d = b.to(device);
  const double seconds = sconce::median_seconds([&] { torch::matmul(c, d); }, device);
  const double with_transfers =
      sconce::median_seconds([&] { torch::matmul(a.to(device), b.to(device)).cpu(); }, device);
  return {device, n, seconds, std::max(seconds, with_transfers)};
}

int main() {
  const auto device = sconce::try_gpu();
  std::vector<Row> cpu_rows, gpu_rows;
  for (const int64_t n : {4, 16, 64, 256, 512, 1024}) {
    cpu_rows.push_back(measure(torch::kCPU, n));
    if (!device.is_cpu()) gpu_rows.push_back(measure(device, n));
  }

  // note: the exercise sets no measure. A rate is FLOP/s, and no interface tells a device's limit,
  // so each stands beside the best of this run on that device.
  for (const auto& rows : {cpu_rows, gpu_rows}) {
    double best = 0;
    for (const auto& row : rows) best = std::max(best, row.rate());
    for (const auto& row : rows) {
      std::printf("~ %s, n = %lld: %.3f ms, %.2f GFLOP/s, %.0f %% of the best, transfers %.0f %%\n",
                  row.device.is_cpu() ? "cpu" : "gpu", static_cast<long long>(row.n),
                  row.seconds * 1e3, row.rate() / 1e9, 100 * row.rate() / best,
                  100 * (1 - row.seconds / row.seconds_with_transfers));
    }
  }

  int64_t wins = 0;  // the smallest size from which on the GPU is faster with its transfers
  for (size_t i = gpu_rows.size(); i-- > 0;) {
    if (gpu_rows[i].seconds_with_transfers > cpu_rows[i].seconds) break;
    wins = gpu_rows[i].n;
  }
  std::printf("~ the GPU wins from n = %lld (0: never)\n", static_cast<long long>(wins));
  if (device.is_cpu()) std::printf("There is no GPU here to compare with.\n");
}
