// Exercise 2: parameters on the GPU
//
// Read the weights of a layer that lies on the GPU: all of them, and one as a number. Then write some,
// from numbers and from a tensor on the CPU, so that the layer still lies where it did and an
// optimizer still knows its parameters. The file makes the layer and prints its weights.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

int main() {
  torch::manual_seed(0);
  torch::nn::Linear net(3, 2);
  net->to(sconce::try_gpu());
  std::cout << sconce::repr(net->weight.data()) << '\n';
}
