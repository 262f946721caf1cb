// The optimizer's step and the clipping of gradients on 1,000 parameters of 64 elements, for
// optimizer.py, which runs this in turn with Python. Prints a line "name seconds" each, the median
// of the calls.

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/stopwatch.hpp"

namespace {

std::vector<torch::Tensor> parameters() {
  std::vector<torch::Tensor> made;
  for (int i = 0; i < 1000; ++i) {
    made.push_back(torch::randn(64).requires_grad_());
    made.back().mutable_grad() = torch::randn(64);
  }
  return made;
}

void measure(const std::string& name, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < 120; ++i) {
    const sconce::Stopwatch watch;
    call();
    if (i >= 20) times.push_back(watch.seconds());
  }
  std::nth_element(times.begin(), times.begin() + 50, times.end());
  std::cout << name << " " << times[50] << "\n";
}

}  // namespace

int main() {
  torch::optim::AdamW libtorch(parameters());
  measure("libtorch-adamw", [&] { libtorch.step(); });
  sconce::optim::AdamW ours(parameters());
  measure("sconce-adamw", [&] { ours.step(); });
  const auto to_clip = parameters();
  measure("sconce-clip", [&] { sconce::nn::clip_grad_norm_(to_clip, 1.0); });
}
