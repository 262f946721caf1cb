// Handles operators from other libraries, such as torchvision. A program may define these operators
// after it has used a GPU, and may register their kernels even later. Therefore, the kernel is
// chosen in each call, at the dispatch key BackendSelect, which immediately precedes the device's
// key.

#include "simgpu/kernels/custom_operators.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "simgpu/kernels/boxed_kernel.hpp"

namespace simgpu {

namespace {

using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

// An operator's entry is private, and the public function for registering a kernel would wait for a
// lock that the dispatcher holds while calling a listener. Only an explicit instantiation may refer
// to a private member.
template <auto Definition>
struct EntryAccess {
  friend c10::impl::OperatorEntry& entry_of(const OperatorHandle& op) {
    return (op.*Definition)->op;
  }
};
c10::impl::OperatorEntry& entry_of(const OperatorHandle& op);
template struct EntryAccess<&OperatorHandle::operatorDef_>;

class CustomKernel : public c10::OperatorKernel {
 public:
  explicit CustomKernel(const OperatorPlan& plan) : by_cpu_(plan) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const auto below =
        keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect);
    if (below.highestPriorityTypeId() == DispatchKey::CUDA &&
        op.hasKernelForDispatchKey(DispatchKey::CUDA) &&
        op.hasComputedKernelForDispatchKey(DispatchKey::CPU)) {
      return by_cpu_(op, below, stack);
    }
    op.redispatchBoxed(below, stack);
  }

 private:
  BoxedKernel by_cpu_;
};

// Returns whether the operator communicates with other processes. The CPU kernel of such an
// operator would use a different process group.
bool takes_process_group(const c10::FunctionSchema& schema) {
  for (const auto& argument : schema.arguments()) {
    if (argument.type()->str().find("torch.classes.c10d.") != std::string::npos) return true;
  }
  return false;
}

class Listener : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const OperatorHandle& op) override {
    if (is_of_libtorch(op.operator_name().name) || takes_process_group(op.schema()) ||
        returns_view(op.schema()) || op.hasKernelForDispatchKey(DispatchKey::BackendSelect)) {
      return;
    }
    auto plan = make_plan(op, DispatchKey::CPU);
    plan.cpu_tensors = CpuTensors::any;
    entry_of(op).registerKernel(
        c10::Dispatcher::singleton(), DispatchKey::BackendSelect,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<CustomKernel>(plan)),
        std::nullopt, nullptr, "simulated GPUs");
  }

  void onOperatorDeregistered(const OperatorHandle&) override {}
};

}  // namespace

bool is_of_libtorch(const std::string& name) {
  static const std::set<std::string_view> namespaces{"_c10d_functional",
                                                     "_c10d_functional_autograd",
                                                     "_dtensor",
                                                     "_native",
                                                     "_native_aot",
                                                     "_quantized",
                                                     "_test",
                                                     "aten",
                                                     "c10d",
                                                     "c10d_functional",
                                                     "coor",
                                                     "debug_mode_ops",
                                                     "debugprims",
                                                     "export",
                                                     "flex_gemm",
                                                     "fsdp",
                                                     "inductor",
                                                     "inductor_prims",
                                                     "mkl",
                                                     "mkldnn",
                                                     "mkldnn_prepacked",
                                                     "onednn",
                                                     "prim",
                                                     "prims",
                                                     "profiler",
                                                     "quantization",
                                                     "quantized",
                                                     "rngprims",
                                                     "sparse",
                                                     "static_runtime",
                                                     "symm_mem"};
  return namespaces.contains(std::string_view(name).substr(0, name.find("::")));
}

void follow_custom_operators() {
  [[maybe_unused]] static auto& handle = *new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()));
}

}  // namespace simgpu
