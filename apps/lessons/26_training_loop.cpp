// The training loop: five epochs on the device, and what a step takes there and on the CPU.
// Covers: T4.loop
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1, fc2;
  explicit SimpleNNImpl(int64_t hidden = 10) : fc1(3, hidden), fc2(hidden, 2) {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

// Trains a model of so many hidden units for fifty steps, and tells a step's share.
void time_step(torch::Device device, int64_t hidden) {
  torch::manual_seed(0);
  SimpleNN model(hidden);
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);
  torch::Tensor loss;
  const auto train = [&] {
    for (int step = 0; step < 50; ++step) {
      optimizer.zero_grad();
      loss = torch::nn::functional::cross_entropy(model(inputs), labels);
      loss.backward();
      optimizer.step();
    }
  };
  const double seconds = sconce::median_seconds(train, device, 3);
  int64_t count = 0;
  for (const auto& parameter : model->parameters()) count += parameter.numel();
  std::printf("%lld hidden units: %lld parameters on %s\n",
              static_cast<long long>(hidden), static_cast<long long>(count),
              model->fc1->weight.device().str().c_str());
  std::printf("  loss after 4 x 50 steps: %.3f\n", loss.item<double>());
  std::printf("~ a step: %.3f ms\n", seconds / 50 * 1e3);
}

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  // T4.loop
  SimpleNN model;
  model->to(device);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);

  const int num_epochs = 5;
  for (int epoch = 0; epoch < num_epochs; ++epoch) {
    optimizer.zero_grad();
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    loss.backward();
    optimizer.step();
    std::printf("Epoch [%d/%d], Loss: %.4f\n", epoch + 1, num_epochs,
                loss.item<double>());
  }

  // note: a model of 62 parameters is too small for a GPU, so a wide one stands beside it.
  std::printf("Beyond the cells:\n");
  for (const int64_t hidden : {10, 4096}) {
    time_step(torch::kCPU, hidden);
    if (!device.is_cpu()) time_step(device, hidden);
  }
  if (device.is_cpu()) std::printf("There is no GPU here to compare with.\n");
}
