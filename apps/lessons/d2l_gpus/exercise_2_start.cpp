// Creates a layer on the GPU and prints its weights. To do: read and write the weights.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

namespace nn = torch::nn;

int main() {
  torch::manual_seed(0);
  nn::Linear net(3, 2);
  net->to(sconce::try_gpu());
  std::cout << sconce::repr(net->weight.data()) << '\n';
  std::cout << "Still to do: read one weight as a scalar, and set the parameters\n";
}
