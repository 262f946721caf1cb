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

// Takes `steps` steps on the device and prints the loss of each, if it is to.
void train(torch::Device device, int64_t hidden, int steps, bool print) {
  torch::manual_seed(0);
  SimpleNN model(hidden);
  model->to(device);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);

  for (int epoch = 0; epoch < steps; ++epoch) {
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (print) std::printf("Epoch [%d/%d], Loss: %.4f\n", epoch + 1, steps, loss.item<double>());
  }
}

// Prints a step's share of a training of fifty, which is timed as a whole.
void time_step(const char* name, torch::Device device, int64_t hidden) {
  const double seconds =
      sconce::median_seconds([&] { train(device, hidden, 50, false); }, device, 3);
  std::printf("~ a step with %lld hidden units on the %s: %.3f ms\n",
              static_cast<long long>(hidden), name, seconds / 50 * 1e3);
}

int main() {
  const auto device = sconce::try_gpu();
  train(device, 10, 5, true);

  // note: a model of 62 parameters is too small for a GPU, so a wide one stands beside it.
  for (const int64_t hidden : {10, 4096}) {
    time_step("CPU", torch::kCPU, hidden);
    if (!device.is_cpu()) time_step("GPU", device, hidden);
  }
  if (device.is_cpu()) std::printf("There is no GPU here to compare with.\n");
}
