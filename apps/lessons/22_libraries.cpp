// The libraries below: for which operations PyTorch has an operator of cuDNN, and for which not.
// Covers: T3.libs
#include <sconce/sconce.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <iostream>

// Whether the dispatcher knows an operator with both words in its name.
bool has_operator(const std::string& library, const std::string& operation) {
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) {
    if (op.name.find(library) != std::string::npos &&
        op.name.find(operation) != std::string::npos) {
      return true;
    }
  }
  return false;
}

int main() {
  // note: the text counts pooling and matrix products among cuDNN's, and eigenvalues too. The
  // dispatcher has no such operator: pooling is PyTorch's own kernel, products are cuBLAS's,
  // eigenvalues cuSOLVER's. The list needs no GPU: every build of LibTorch knows the names.
  for (const char* operation :
       {"convolution", "convolution_relu", "batch_norm", "rnn", "pool", "matmul", "linalg"}) {
    std::cout << "cudnn " << operation << ": " << (has_operator("cudnn", operation) ? "yes" : "no")
              << '\n';
  }
}
