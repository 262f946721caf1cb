#include "simgpu/kernels/refused_kernel.hpp"

#include <c10/util/Exception.h>

#include <utility>

namespace simgpu {

RefusedKernel::RefusedKernel(std::string name) : name_(std::move(name)) {}

void RefusedKernel::operator()(const c10::OperatorHandle&, c10::DispatchKeySet,
                               torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "simulated GPUs: ", name_, " is not supported");
}

}  // namespace simgpu
