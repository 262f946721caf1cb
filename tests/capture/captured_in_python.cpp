// The script captured_in_python.py loads this library into a Python process.

#include <torch/nn/modules/linear.h>

#include "sconce/captured_step.hpp"
#include "sconce/optim/sgd.hpp"

/// Trains a layer with a captured step and writes the losses. Returns the number of steps that ran
/// their host code. All other steps were replayed.
extern "C" __attribute__((visibility("default"))) int train_captured(double* losses, int steps) {
  torch::nn::Linear layer(3, 2);
  {
    const torch::NoGradGuard no_grad;
    layer->weight.copy_(torch::linspace(-1, 1, 6).view({2, 3}));
    layer->bias.zero_();
  }
  sconce::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  int host_runs = 0;
  sconce::CapturedStep step(torch::kCPU, [&](const sconce::CapturedStep::Tensors& batch) {
    ++host_runs;
    optimizer.zero_grad();
    const auto loss = layer->forward(batch[0]).square().mean();
    loss.backward();
    optimizer.step();
    return sconce::CapturedStep::Tensors{loss};
  });
  const auto x = torch::linspace(-2, 2, 12).view({4, 3});
  for (int i = 0; i < steps; ++i) losses[i] = step({x + i})[0].item<double>();
  return host_runs;
}
