// A program for which counter_test.py contains the expected counts. With PLANTED=C++ in the
// environment, the program also performs a host read and swaps the dimensions of a product.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

int main() {
  const char* where = std::getenv("PLANTED");
  const bool planted = where != nullptr && std::string_view(where) == "C++";
  const auto X = at::ones({2, 3}), w = at::ones({3, 4}), images = at::ones({1, 1, 4, 4});
  const auto Y = planted ? X.t().matmul(w.slice(0, 0, 2)) : X.matmul(w);
  const auto filtered = at::conv2d(images, at::ones({2, 1, 3, 3}));
  std::cout << (X + X).sum().item<float>() + filtered.sum().item<float>() << '\n';
  if (planted) static_cast<void>(Y.sum().item<float>());
}
