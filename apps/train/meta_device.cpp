#include "meta_device.hpp"

#include <torch/library.h>

namespace train {

namespace {

// This dispatch key comes before autograd and the backends. LibTorch itself does not register any
// kernels for this key.
constexpr auto meta_key = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Calls the operator with the meta device if no device is specified.
void call_on_meta(const c10::OperatorHandle& op, c10::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard not_within(meta_key);
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& given = torch::jit::peek(*stack, i, arguments.size());
    if (arguments[i].name() == "device" && given.isNone()) given = c10::Device(c10::kMeta);
  }
  op.callBoxed(stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&call_on_meta>());
}

MetaDevice::MetaDevice() : included_(meta_key) {}

}  // namespace train
