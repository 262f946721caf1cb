#include "simgpu/kernels/layouts.hpp"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>

namespace simgpu {

namespace {

at::Tensor map_coo(const at::Tensor& tensor, const TensorMap& f) {
  const auto* impl = at::sparse::get_sparse_impl(tensor);
  return at::_sparse_coo_tensor_unsafe(f(impl->indices()), f(impl->values()), tensor.sizes(), {},
                                       {}, {}, {}, impl->coalesced());
}

at::Tensor map_compressed(const at::Tensor& tensor, const TensorMap& f) {
  const auto* impl = at::sparse_csr::get_sparse_csr_impl(tensor);
  const auto values = f(impl->values());
  return at::_sparse_compressed_tensor_unsafe(f(impl->compressed_indices()),
                                              f(impl->plain_indices()), values, tensor.sizes(),
                                              values.options().layout(tensor.layout()));
}

// Sizes, strides, and offsets are stored on the CPU for all devices.
at::Tensor map_nested(const at::Tensor& tensor, const TensorMap& f) {
  const auto* impl = at::native::get_nested_tensor_impl(tensor);
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      f(impl->get_unsafe_storage_as_tensor()), impl->get_nested_sizes(), impl->get_nested_strides(),
      impl->get_storage_offsets());
}

}  // namespace

bool has_parts(const at::Tensor& tensor) {
  return tensor.is_nested() || tensor.layout() != c10::kStrided;
}

at::Tensor map_parts(const at::Tensor& tensor, const TensorMap& f) {
  if (tensor.is_nested()) return map_nested(tensor, f);
  if (tensor.layout() == c10::kSparse) return map_coo(tensor, f);
  TORCH_CHECK_NOT_IMPLEMENTED(at::sparse_csr::is_sparse_compressed(tensor),
                              "simulated GPUs: tensors with layout ", tensor.layout(),
                              " are not supported");
  return map_compressed(tensor, f);
}

void assign_sparse(const at::Tensor& to, const at::Tensor& from) {
  if (to.layout() == c10::kSparse) {
    const auto* source = at::sparse::get_sparse_impl(from);
    auto* target = at::sparse::get_sparse_impl(to);
    target->raw_resize_(source->sparse_dim(), source->dense_dim(), from.sizes());
    target->set_indices_and_values_unsafe(source->indices(), source->values());
    target->set_coalesced(source->coalesced());
    return;
  }
  const auto* source = at::sparse_csr::get_sparse_csr_impl(from);
  at::sparse_csr::get_sparse_csr_impl(to)->set_member_tensors(
      source->compressed_indices(), source->plain_indices(), source->values(), from.sizes());
}

}  // namespace simgpu
