// Reads and writes the parameters of a layer that is on the GPU.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <sstream>

namespace nn = torch::nn;

int main() {
  torch::manual_seed(0);
  nn::Linear net(3, 2);
  net->to(sconce::try_gpu());

  // T0.E2
  std::cout << sconce::repr(net->weight.data()) << '\n';
  std::cout << sconce::repr(net->weight.data()[0][1].item<double>()) << '\n';
  auto before = net->weight.data().cpu();
  {
    torch::NoGradGuard no_grad;
    net->weight.fill_(1);
    net->weight[0][1] = 5;
    net->bias.copy_(torch::tensor({1.0f, 2.0f}));
  }
  std::cout << sconce::repr(net->weight.data()) << '\n';
  std::cout << sconce::repr(net->bias.data()) << '\n';
  std::cout << "the bias is still there: "
            << sconce::repr(net->bias.device() == sconce::try_gpu()) << '\n';
  std::cout << "cpu() before writing: " << sconce::repr(before) << '\n';

  auto weight = net->weight;
  net->to(torch::kCPU);
  std::cout << "after to(): " << weight.device()
            << ", the same parameter: " << sconce::repr(weight.is_same(net->weight))
            << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  try {
    net->weight.fill_(1);
  } catch (const c10::Error& error) {
    std::cout << error.what_without_backtrace() << '\n';
  }
  net->to(sconce::try_gpu());
  std::stringstream file;
  torch::save(net->weight.data(), file);
  torch::Tensor loaded;
  torch::load(loaded, file, torch::kCPU);
  std::cout << "saved on " << net->weight.device() << ", loaded on " << loaded.device()
            << ": " << sconce::repr(loaded) << '\n';
}
