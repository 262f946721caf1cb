#include "simgpu/kernels/cpu_view.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

size_t extent(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<size_t>(last + 1) * tensor.dtype().itemsize();
}

at::Tensor view_on_cpu(const at::Tensor& tensor, bool writes) {
  const auto& storage = tensor.storage();
  const void* data = writes ? storage.mutable_data() : storage.data();
  c10::Storage same(c10::Storage::use_byte_size_t(), storage.nbytes(),
                    c10::DataPtr(data == nullptr ? nullptr : host_address(data), c10::kCPU),
                    c10::GetCPUAllocator(), true);
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(same), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  auto* impl = view.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.is_conj()) impl->_set_conj(true);
  if (tensor.is_neg()) impl->_set_neg(true);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return view;
}

}  // namespace simgpu
