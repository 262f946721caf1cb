// Moves a network with a lazy layer to the GPU, runs it, and shows where its weight is.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

namespace nn = torch::nn;

int main() {
  auto try_gpu = [] {
    return torch::Device(torch::cuda::device_count() >= 1 ? "cuda:0" : "cpu");
  };
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());

  // T0.net
  nn::Sequential net(sconce::nn::LazyLinear(1));
  net->to(/*device=*/try_gpu());

  // T0.netX
  auto output = net->forward(X);
  std::cout << "Network output: " << sconce::repr(output) << '\n';

  // T0.where
  std::cout << "Weight device: " << net[0]->as<nn::Linear>()->weight.data().device()
            << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << sconce::repr(net) << '\n';
  for (auto parameter : net->parameters())
    std::cout << sconce::repr(parameter.sizes()) << " on " << parameter.device() << '\n';
  std::cout << "equal rows: " << sconce::repr(output[0].equal(output[1])) << '\n';
}
