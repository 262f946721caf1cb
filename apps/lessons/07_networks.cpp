// A network on the GPU: lazy or not, it is moved, called, and its parameters lie where it does.
// Covers: T0.net T2.44 T1.net T0.netX T1.netX T2.45 T0.where T1.where T2.46
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

int main() {
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());

  // A lazy layer learns its number of inputs from the first call. T0 and T2 build the net with it.
  // note: `net->to(device)` without an assignment moves a module, in Python too; a tensor's `to`
  // returns the copy and leaves the tensor where it is.
  torch::nn::Sequential net(sconce::nn::LazyLinear(1));
  net->to(try_gpu());
  std::cout << repr(net) << '\n';
  std::cout << repr(net->forward(X)) << '\n';
  std::cout << repr(net) << '\n';  // the real number now, and the name Linear
  std::cout << net[0]->as<torch::nn::Linear>()->weight.device() << '\n';

  // note: T1 names the number of inputs at once, and its layer has its parameters from the start.
  torch::manual_seed(0);
  net = torch::nn::Sequential(torch::nn::Linear(3, 1));
  net->to(try_gpu());
  std::cout << repr(net) << '\n';
  for (const auto& parameter : net->parameters()) std::cout << repr(parameter.sizes()) << '\n';
  std::cout << repr(net->forward(X)) << '\n';  // two equal rows, for the rows of X are equal
  std::cout << net[0]->as<torch::nn::Linear>()->weight.device() << '\n';
}
