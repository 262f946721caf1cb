// Keeping a log: reading each loss makes the host wait; a log on the device is copied once.
// Covers: T1.log
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr;

void beyond(const torch::Tensor& loss, const torch::Tensor& log);

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto X = torch::randn({100, 64, 3}, device);  // 100 minibatches
  auto y = X.sum(/*dim=*/2, /*keepdim=*/true);
  torch::nn::Linear net(3, 1);
  net->to(device);
  torch::Tensor loss;

  // T1.log
  // note: a read does not stall all GPUs, as the text has it: the host waits for one stream.
  auto read = torch::zeros({100});
  for (int i = 0; i < 100; ++i) {
    loss = torch::mse_loss(net(X[i]), y[i]);
    read[i] = loss.item<float>();
  }
  auto log = torch::zeros({100}, device);
  for (int i = 0; i < 100; ++i) {
    loss = torch::mse_loss(net(X[i]), y[i]);
    log[i] = loss.detach();
  }
  auto copied = log.cpu();
  std::cout << "log on " << log.device() << ", copied to " << copied.device() << '\n';
  std::cout << "equal logs: " << repr(copied.equal(read)) << '\n';
  std::cout << "last loss: " << repr(copied[99].item<double>()) << '\n';

  beyond(loss, log);
}

// Beyond the cells: without detach() the log keeps the graph of every step.
void beyond(const torch::Tensor& loss, const torch::Tensor& log) {
  std::cout << "a log keeps the graphs: " << repr(log.requires_grad()) << '\n';
  log[99] = loss;
  std::cout << "without detach(): " << repr(log.requires_grad()) << '\n';
}
