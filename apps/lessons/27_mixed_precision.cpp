// Mixed precision: autocast computes in 16 bits, and a scaler keeps small gradients above 0.
// Covers: T4.amp
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/autocast_mode.h>
#include <cstdio>
#include <iostream>

using sconce::repr;

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

// note: both classes stand for sconce's own, and wait for them: they make LibTorch's calls, as
// Python's do.
struct Autocast {
  Autocast(torch::DeviceType type, torch::ScalarType dtype) : device(type) {
    at::autocast::increment_nesting();
    at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::set_autocast_enabled(device, dtype != torch::kFloat);
  }
  ~Autocast() {
    at::autocast::set_autocast_enabled(device, false);
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
  torch::DeviceType device;
};

struct GradScaler {
  torch::Tensor scale, growth_tracker, found_inf;
  int64_t growth_interval;
  GradScaler(torch::Device device, double init_scale, int64_t interval)
      : scale(torch::full({}, init_scale, device)),
        growth_tracker(torch::zeros({}, torch::dtype(torch::kInt).device(device))),
        growth_interval(interval) {}
  void step(torch::optim::Optimizer& optimizer) {
    std::vector<torch::Tensor> gradients;
    for (const auto& p : optimizer.param_groups()[0].params()) gradients.push_back(p.grad());
    found_inf = torch::zeros_like(scale);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, scale.reciprocal());
    if (found_inf.item<double>() == 0) optimizer.step();
  }
  void update() {
    at::_amp_update_scale_(scale, growth_tracker, found_inf, 2., 0.5, growth_interval);
  }
};

// note: T4 defines neither loader, loss nor optimizer, and never moves the data; without CUDA its
// torch.cuda.amp, deprecated for torch.amp, warns and is off. Here the CPU has it too.
void train(torch::Device device, torch::ScalarType dtype, int steps, GradScaler scaler) {
  torch::manual_seed(0);
  SimpleNN model;
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);
  torch::Tensor outputs, loss;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    {
      Autocast autocast(device.type(), dtype);
      outputs = model(inputs);
      loss = torch::nn::functional::cross_entropy(outputs, labels);
    }
    (loss * scaler.scale).backward();
    scaler.step(optimizer);
    scaler.update();
    std::printf("  step %d: loss %.4f, scale %.0f\n", step + 1, loss.item<double>(),
                scaler.scale.item<double>());
  }
  std::cout << "  outputs " << repr(outputs.scalar_type()) << ", loss " << repr(loss.scalar_type())
            << ", weights " << repr(model->fc1->weight.scalar_type()) << '\n';
}

int main() {
  const auto device = sconce::try_gpu();
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    std::cout << repr(dtype) << '\n';
    train(device, dtype, 4, GradScaler(device, dtype == torch::kHalf ? 65536 : 1, 2000));
  }
  // Too large a scale makes gradients inf: such a step is skipped and the scale halved, until it
  // fits; after growth_interval good steps it doubles.
  std::cout << "from a scale of 2**24\n";
  train(device, torch::kHalf, 8, GradScaler(device, 1 << 24, 2));
}
