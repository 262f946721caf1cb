// Contains the intentional host wait for test-simgpu-steps. This file is compiled with line numbers
// and without the precompiled header, which does not contain line numbers.
#include "simgpu_print_loss.hpp"

#include <ATen/core/Tensor.h>

#include <iostream>

void print_loss(const at::Tensor& loss) {
  std::cout << loss.item<float>() << '\n';
}
