// A network on the GPU: lazy or not, it is moved, called, and its parameters lie where it does.
// Covers: T0.net T2.44 T1.net T0.netX T1.netX T2.45 T0.where T1.where T2.46
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

int main() {
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());

  // T0.net, T2.44
  // A lazy layer learns its number of inputs from the first call.
  // note: `net->to(device)` without an assignment moves a module, in Python too; a tensor's `to`
  // returns the copy and leaves the tensor where it is.
  torch::nn::Sequential net(sconce::nn::LazyLinear(1));
  net->to(try_gpu());
  std::cout << repr(net) << '\n';

  auto output = net->forward(X);  // T0.netX, T2.45
  std::cout << "Network output: " << repr(output) << '\n';

  // T0.where, T2.46
  const auto weight_of_first = [&net] { return net[0]->as<torch::nn::Linear>()->weight; };
  std::cout << "Weight device: " << weight_of_first().device() << '\n';
  auto lazy = net;

  // T1.net
  // note: T1 names the number of inputs at once, and its layer has its parameters from the start.
  torch::manual_seed(0);
  net = torch::nn::Sequential(torch::nn::Linear(3, 1));
  net->to(try_gpu());
  std::cout << repr(net) << '\n';
  std::cout << repr(net->forward(X)) << '\n';       // T1.netX
  std::cout << weight_of_first().device() << '\n';  // T1.where

  // The lazy layer has the real number now, and the name Linear.
  std::cout << "Beyond the cells:\n" << repr(lazy) << '\n';
  for (const auto& parameter : net->parameters())
    std::cout << repr(parameter.sizes()) << '\n';
  std::cout << "two equal rows: " << repr(output[0].equal(output[1])) << '\n';
  std::cout << "the same numbers, lazy or not: " << repr(output.equal(net->forward(X)))
            << '\n';
}
