// Logs the losses of 100 minibatches, either with one read per step or with one copy at
// the end.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

namespace nn = torch::nn;

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda:0" : "cpu");
  auto X = torch::randn({100, 64, 3}, device);  // 100 minibatches
  auto y = X.sum(/*dim=*/2, /*keepdim=*/true);
  auto net = nn::Linear(3, 1);
  net->to(device);

  // T1.log
  auto read_each = [&] {
    auto read = torch::zeros(100);
    for (int i = 0; i < 100; ++i) {
      auto loss = torch::mse_loss(net(X[i]), y[i]);
      read[i] = loss.item<float>();
    }
    return read;
  };

  auto log = torch::zeros(100, device);
  auto keep_log = [&] {
    for (int i = 0; i < 100; ++i) {
      auto loss = torch::mse_loss(net(X[i]), y[i]);
      log[i] = loss.detach();
    }
    return log.cpu();
  };

  std::cout << "equal logs: " << sconce::repr(read_each().equal(keep_log())) << '\n';
  std::printf("~ reading each loss: %.3f ms\n",
              sconce::median_seconds(read_each, device) * 1e3);
  std::printf("~ keeping a log on the device: %.3f ms\n",
              sconce::median_seconds(keep_log, device) * 1e3);

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << "with detach(), the log requires a gradient: "
            << sconce::repr(log.requires_grad()) << '\n';
  log[99] = torch::mse_loss(net(X[99]), y[99]);
  std::cout << "without detach(): " << sconce::repr(log.requires_grad()) << '\n';
}
