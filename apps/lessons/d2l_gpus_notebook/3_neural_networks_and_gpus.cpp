// Moves a lazy network to a device, runs it there, and checks where its parameters are.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>

namespace nn = torch::nn;

torch::Device try_gpu(int i = 0) {
  if (torch::cuda::device_count() >= i + 1)
    return torch::Device("cuda:" + std::to_string(i));
  return torch::Device("cpu");
}

int main() {
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());

  // T2.44
  auto net = nn::Sequential(sconce::nn::LazyLinear(1));
  net->to(try_gpu());
  std::cout << sconce::repr(net) << '\n';

  // T2.45
  std::cout << sconce::repr(net->forward(X)) << '\n';

  // T2.46
  std::cout << net[0]->as<nn::Linear>()->weight.data().device() << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << sconce::repr(net) << '\n';
  auto output = net->forward(X);
  std::cout << "two equal rows: " << sconce::repr(output[0].equal(output[1])) << '\n';
}
