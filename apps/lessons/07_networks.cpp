// A network on the GPU: lazy or not, it is moved, called, and its parameters lie where it does.
// Covers: T0.net T2.44 T1.net T0.netX T1.netX T2.45 T0.where T1.where T2.46
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr, sconce::try_gpu;

void beyond(const torch::Tensor& X, torch::nn::Sequential net);

int main() {
  torch::manual_seed(0);
  auto X = torch::ones({2, 3}, try_gpu());

  // T0.net, T2.44
  torch::nn::Sequential net(sconce::nn::LazyLinear(1));
  net->to(try_gpu());
  std::cout << repr(net) << '\n';

  // T0.netX, T2.45
  auto output = net->forward(X);
  std::cout << "Network output: " << repr(output) << '\n';

  // T0.where, T2.46
  std::cout << "Weight device: "
            << net[0]->as<torch::nn::Linear>()->weight.data().device() << '\n';

  // T1.net
  net = torch::nn::Sequential(torch::nn::Linear(3, 1));
  net->to(try_gpu());
  std::cout << repr(net) << '\n';

  // T1.netX
  std::cout << repr(net->forward(X)) << '\n';

  // T1.where
  std::cout << net[0]->as<torch::nn::Linear>()->weight.data().device() << '\n';

  beyond(X, net);
}

// Beyond the cells: the parameters' shapes, the lazy layer after its first call, and to.
void beyond(const torch::Tensor& X, torch::nn::Sequential net) {
  std::cout << "Beyond the cells:\n";
  for (const auto& p : net->parameters()) std::cout << repr(p.sizes()) << '\n';
  torch::nn::Sequential lazy(sconce::nn::LazyLinear(1));
  lazy->to(try_gpu());
  auto output = lazy->forward(X);
  std::cout << repr(lazy) << '\n';
  std::cout << "two equal rows: " << repr(output[0].equal(output[1])) << '\n';
  net->to(torch::kDouble);
  X.to(torch::kDouble);
  std::cout << "the net: " << repr(net->parameters()[0].scalar_type())
            << ", X: " << repr(X.scalar_type()) << '\n';
}
