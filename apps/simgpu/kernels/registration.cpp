// Replaces LibTorch's GPU kernels.

#include "simgpu/kernels/registration.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <caffe2/core/common.h>
#include <torch/version.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/kernels/boxed_kernel.hpp"
#include "simgpu/kernels/choosers.hpp"
#include "simgpu/kernels/custom_operators.hpp"
#include "simgpu/kernels/kept_operators.hpp"
#include "simgpu/kernels/mixed_device_kernels.hpp"
#include "simgpu/kernels/own_kernels.hpp"
#include "simgpu/kernels/ranges.hpp"
#include "simgpu/kernels/refused_kernel.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

using c10::DispatchKey;
using c10::KernelFunction;

struct Silent : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// Keeps each registration alive until the process ends, so that the real kernels are never
// restored.
void register_kernel(const c10::OperatorName& name, DispatchKey key, KernelFunction kernel) {
  static auto& handles = *new std::vector<c10::RegistrationHandleRAII>;
  handles.push_back(c10::Dispatcher::singleton().registerImpl(
      name, key, std::move(kernel), std::nullopt, nullptr, "simulated GPUs"));
}

DispatchKey key_of_cpu(DispatchKey key) {
  switch (key) {
    case DispatchKey::SparseCUDA:
      return DispatchKey::SparseCPU;
    case DispatchKey::SparseCsrCUDA:
      return DispatchKey::SparseCsrCPU;
    case DispatchKey::NestedTensorCUDA:
      return DispatchKey::NestedTensorCPU;
    default:
      return DispatchKey::CPU;
  }
}

template <class Kernel, class... Arguments>
KernelFunction boxed(Arguments&&... arguments) {
  return KernelFunction::makeFromBoxedFunctor(
      std::make_unique<Kernel>(std::forward<Arguments>(arguments)...));
}

bool runs_on_cpu(const c10::OperatorHandle& op, DispatchKey key) {
  if (key == DispatchKey::QuantizedCUDA) return false;
  const auto& name = op.operator_name().name;
  if (!name.starts_with("aten::") && !name.starts_with("fsdp::")) return false;
  return op.hasComputedKernelForDispatchKey(key_of_cpu(key));
}

// Returns whether the CPU kernel calls other operators on one tensor at a time.
bool loops_over_tensors(const c10::OperatorHandle& op) {
  return op.operator_name().name.starts_with("aten::_foreach_") &&
         !op.hasKernelForDispatchKey(DispatchKey::CPU);
}

void replace(const c10::OperatorName& name, DispatchKey key) {
  if (!is_of_libtorch(name.name)) return;
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  if (!op || keeps_kernel(c10::toString(name), key)) return;
  if (runs_on_cpu(*op, key)) {
    if (returns_view(op->schema())) return;
    const auto plan = make_plan(*op, key_of_cpu(key));
    register_kernel(
        name, key, loops_over_tensors(*op) ? boxed<ForeachKernel>(plan) : boxed<BoxedKernel>(plan));
  } else {
    register_kernel(name, key, boxed<RefusedKernel>(c10::toString(name)));
  }
}

void replace_kernels(DispatchKey key) {
  for (const auto& name : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(key)) {
    replace(name, key);
  }
}

// Replaces composite operators that select a GPU library or launch kernels themselves.
void replace_composites() {
  const c10::OperatorName names[] = {
      {"aten::convolution", ""}, {"aten::_convolution", ""}, {"aten::ldexp", "Tensor"}};
  for (const auto& name : names) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.name.c_str(),
                                                                   name.overload_name.c_str());
    register_kernel(op.operator_name(), DispatchKey::CUDA,
                    boxed<BoxedKernel>(make_plan(op, DispatchKey::CPU)));
  }
}

// Returns std::nullopt if this LibTorch version does not have the operator with these arguments.
std::optional<c10::OperatorHandle> find_operator(const OwnKernel& kernel) {
  const auto op = c10::Dispatcher::singleton().findSchema(kernel.name);
  const bool fits = op && op->schema().arguments().size() == kernel.arguments;
  return fits ? op : std::nullopt;
}

void register_own_kernels() {
  OwnKernels kernels;
  for (const auto add : {&add_batch_norms, &add_convolutions, &add_dropouts, &add_fused_attentions,
                         &add_grid_samplers, &add_products, &add_recurrent_cells, &add_rms_norms,
                         &add_sequence_attentions, &add_softmaxes}) {
    add(kernels);
  }
  for (auto& kernel : kernels) {
    const auto op = find_operator(kernel);
    if (!op) continue;
    register_kernel(
        kernel.name, DispatchKey::CUDA,
        boxed<BoxedKernel>(make_plan(*op, DispatchKey::CPU), std::move(kernel.function)));
  }
}

void register_kernels_of_gpu_tensors() {
  OwnKernels kernels;
  add_choosers(kernels);
  for (auto& kernel : kernels) {
    if (!find_operator(kernel)) continue;
    register_kernel(kernel.name, DispatchKey::CUDA, std::move(kernel.function));
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto copy = dispatcher.findSchemaOrThrow("aten::copy_", "");
  register_kernel(copy.operator_name(), DispatchKey::CUDA,
                  boxed<CopyKernel>(make_plan(copy, DispatchKey::CPU)));
}

// The process may have loaded a LibTorch other than the one that these kernels were compiled for.
// at::show_config() cannot be used, because it would query the number of GPUs, which is currently
// being determined for the first time.
void check_version() {
  const auto& options = caffe2::GetBuildOptions();
  const auto found = options.find("TORCH_VERSION");
  const auto version = found == options.end() ? "an unknown version" : found->second;
  if (version == TORCH_VERSION) return;
  std::fprintf(stderr, "simulated GPUs: built for LibTorch %s, but the program uses %s\n",
               TORCH_VERSION, version.c_str());
  std::_Exit(2);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void simgpu_register_kernels() {
  check_version();
  if (num_gpus() == 0) return;
  Silent silent;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silent);
  for (const auto key : {DispatchKey::CUDA, DispatchKey::SparseCUDA, DispatchKey::SparseCsrCUDA,
                         DispatchKey::QuantizedCUDA, DispatchKey::NestedTensorCUDA}) {
    replace_kernels(key);
  }
  replace_composites();
  register_own_kernels();
  register_kernels_of_gpu_tensors();
  follow_custom_operators();
  follow_ranges();
}

}  // namespace simgpu
