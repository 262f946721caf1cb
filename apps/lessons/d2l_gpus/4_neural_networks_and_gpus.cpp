// Moves a network to a device, runs it there, and checks where its parameters are.
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

  // T1.net
  auto net = nn::Sequential(nn::Linear(3, 1));
  net->to(try_gpu());

  // T1.netX
  std::cout << sconce::repr(net->forward(X)) << '\n';

  // T1.where
  std::cout << net[0]->as<nn::Linear>()->weight.data().device() << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  for (auto& parameter : net->parameters())
    std::cout << sconce::repr(parameter.sizes()) << " on " << parameter.device() << '\n';
  net->to(torch::kDouble);
  X.to(torch::kDouble);
  std::cout << "without an assignment, to changes the network: "
            << sconce::repr(net->parameters()[0].scalar_type()) << '\n';
  std::cout << "but not the tensor: " << sconce::repr(X.scalar_type()) << '\n';
}
