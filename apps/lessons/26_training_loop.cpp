// The training loop: five epochs on the device, and what a step takes there and on the CPU.
// Covers: T4.loop
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

void beyond(torch::Device device);

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

  beyond(device);
}

// Beyond the cells: the time of a step. A model of 62 parameters is too small for a GPU.
void beyond(torch::Device device) {
  if (device.is_cpu()) std::printf("There is no GPU here to compare with.\n");
  for (const int hidden : {10, 4096}) {
    for (const auto& where : {sconce::cpu(), sconce::gpu()}) {
      if (where.is_cuda() && device.is_cpu()) continue;
      torch::nn::Sequential model(torch::nn::Linear(3, hidden), torch::nn::ReLU(),
                                  torch::nn::Linear(hidden, 2));
      model->to(where);
      torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
      auto inputs = torch::randn({100, 3}).to(where);
      auto labels = torch::randint(0, 2, {100}).to(where);
      const auto step = [&] {
        optimizer.zero_grad();
        torch::nn::functional::cross_entropy(model->forward(inputs), labels).backward();
        optimizer.step();
      };
      const double seconds = sconce::median_seconds(step, where);
      std::printf("~ a step of %d hidden units on %s: %.3f ms\n", hidden,
                  where.str().c_str(), seconds * 1e3);
    }
  }
}
