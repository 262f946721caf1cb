// Exercise 2: reading and writing a model's parameters on the GPU.
// Covers: T0.E2 T1.E2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <sstream>

using sconce::repr, sconce::try_gpu;

void beyond(const torch::nn::Linear& net);

int main() {
  torch::manual_seed(0);
  torch::nn::Linear net(3, 2);
  net->to(try_gpu());

  // T0.E2, T1.E2
  std::cout << repr(net->weight.data()) << '\n';
  std::cout << repr(net->weight.data()[0][1].item<double>()) << '\n';
  {
    torch::NoGradGuard no_grad;
    net->weight.fill_(1);
    net->weight[0][1] = 5;
    net->bias.copy_(torch::tensor({1.f, 2.f}));
  }
  std::cout << repr(net->weight.data()) << '\n';
  std::cout << repr(net->bias.data()) << '\n';
  std::cout << repr(net->bias.device() == try_gpu()) << '\n';

  beyond(net);
}

// Beyond the exercise: without the guard autograd refuses to write; and a file between devices.
void beyond(const torch::nn::Linear& net) {
  try {
    net->weight.fill_(1);
  } catch (const c10::Error& error) {
    std::cout << error.what_without_backtrace() << '\n';
  }

  // note: the exercise says nothing of files. A parameter saved on one device is loaded on another
  // by naming that one; the file is LibTorch's own, not Python's.
  std::stringstream file;
  torch::save(net->weight.data(), file);
  torch::Tensor loaded;
  torch::load(loaded, file, torch::kCPU);
  std::cout << repr(loaded) << '\n';
}
