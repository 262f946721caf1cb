// Shows what CUDA provides, and times a training step on the CPU and the GPU.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

namespace nn = torch::nn;

int main() {
  // T4.cuda
  std::cout << "CUDA can be used: " << sconce::repr(torch::cuda::is_available()) << '\n';
  for (int i = 0; i < torch::cuda::device_count(); ++i) {
    auto card = sconce::cuda::get_device_properties(sconce::gpu(i));
    std::cout << card.name << ", " << card.multi_processor_count << " multiprocessors\n";
  }
  for (int64_t count : {1, 1000, 1000000}) {
    auto x = torch::arange(count, sconce::try_gpu());
    auto squares = x * x;
    std::cout << "squares computed by one call on " << squares.device() << ": "
              << squares.numel() << ", sum " << squares.sum().item<int64_t>() << '\n';
    auto seconds = sconce::median_seconds([&] { return x * x; }, sconce::try_gpu());
    std::printf("~ call time: %.1f us\n", seconds * 1e6);
  }

  // T4.why
  auto step_seconds = [](int width, torch::Device device) {
    nn::Sequential model{nn::Linear(width, width), nn::ReLU(), nn::Linear(width, width)};
    model->to(device);
    torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
    auto x = torch::randn({100, width}, device);
    auto step = [&] {
      optimizer.zero_grad();
      auto loss = model->forward(x).square().mean();
      loss.backward();
      optimizer.step();
    };
    return sconce::median_seconds(step, device);
  };
  for (int width : {16, 128, 1024}) {
    auto cpu = step_seconds(width, sconce::cpu());
    std::printf("~ step at width %d on the CPU: %.3f ms\n", width, cpu * 1e3);
    if (!torch::cuda::is_available()) continue;
    auto gpu = step_seconds(width, sconce::gpu());
    std::printf("~ step at width %d on the GPU: %.3f ms, %.1f times as fast\n", width,
                gpu * 1e3, cpu / gpu);
  }
  if (!torch::cuda::is_available()) std::cout << "needs a GPU for comparison\n";
}
