#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/operator_name.h>

#include <string>
#include <vector>

namespace simgpu {

/// A function on CPU tensors that implements an operator for which LibTorch has no CPU kernel, or
/// only one for other types. The boxed kernel calls this function.
struct OwnKernel {
  c10::OperatorName name;
  c10::KernelFunction function;
  /// The number of arguments, which differs between LibTorch versions.
  size_t arguments;
};

using OwnKernels = std::vector<OwnKernel>;

void add_convolutions(OwnKernels& kernels);
void add_dropouts(OwnKernels& kernels);
void add_fused_attentions(OwnKernels& kernels);
void add_grid_samplers(OwnKernels& kernels);
void add_products(OwnKernels& kernels);
void add_batch_norms(OwnKernels& kernels);
void add_rms_norms(OwnKernels& kernels);
void add_recurrent_cells(OwnKernels& kernels);
void add_sequence_attentions(OwnKernels& kernels);
void add_softmaxes(OwnKernels& kernels);

/// Registers the function as the kernel for aten::<name>.<overload>.
template <class Return, class... Arguments>
void add_own(OwnKernels& kernels, const char* name, const char* overload,
             Return (*function)(Arguments...)) {
  kernels.push_back({{std::string("aten::") + name, overload},
                     c10::KernelFunction::makeFromUnboxedRuntimeFunction(function),
                     sizeof...(Arguments)});
}

}  // namespace simgpu
