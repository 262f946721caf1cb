// Computes two matrix products concurrently, and then sequentially.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cstdio>
#include <future>
#include <iostream>
#include <optional>
#include <utility>

using Pair = std::pair<torch::Tensor, torch::Tensor>;

torch::Tensor in_one_thread(torch::Tensor x) {
  torch::set_num_threads(1);
  return torch::matmul(x, x);
}

int main() {
  torch::manual_seed(0);
  auto device = sconce::try_gpu();
  auto other = sconce::num_gpus() > 1 ? sconce::gpu(1) : device;
  const char* ways[] = {"two threads", "one GPU, two streams", "two GPUs"};
  std::cout << ways[std::min(sconce::num_gpus(), 2)] << '\n';

  // Without a GPU, there are no streams, and each thread uses one core.
  std::optional<c10::Stream> stream;
  if (device.is_cpu())
    torch::set_num_threads(1);
  else
    stream = c10::impl::VirtualGuardImpl(torch::kCUDA).getStreamFromGlobalPool(other);

  // T1.E4
  for (int n : {64, 1024}) {
    auto x = torch::randn({n, n}, device), y = torch::randn({n, n}, device);
    auto y_other = y.to(other);
    sconce::synchronize(other);
    auto at_once = [&]() -> Pair {
      if (device.is_cpu()) {
        auto first = std::async(std::launch::async, in_one_thread, x);
        auto second = std::async(std::launch::async, in_one_thread, y);
        return {first.get(), second.get()};
      }
      auto first = torch::matmul(x, x);
      c10::StreamGuard guard(*stream);
      auto second = torch::matmul(y_other, y_other);
      sconce::synchronize(other);  // the timer waits only for `device`
      return {first, second};
    };
    auto in_sequence = [&] { return Pair{torch::matmul(x, x), torch::matmul(y, y)}; };
    double parallel_time = sconce::median_seconds(at_once, device);
    double sequential_time = sconce::median_seconds(in_sequence, device);

    auto [z, w] = at_once();
    auto [u, v] = in_sequence();
    std::cout << "n = " << n << ", on " << z.device() << " and " << w.device()
              << ", equal products: " << sconce::repr(u.equal(z)) << ", "
              << sconce::repr(v.cpu().equal(w.cpu())) << '\n';
    std::printf("~ at once %.3f ms, in sequence %.3f ms, ratio %.2f\n",
                parallel_time * 1e3, sequential_time * 1e3,
                sequential_time / parallel_time);
  }
}
