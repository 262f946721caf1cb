#include "simgpu/kernels/kept_operators.hpp"

#include <set>
#include <string_view>

namespace simgpu {

namespace {

using Names = std::set<std::string_view>;

const Names& kept_of_dense() {
  static const Names names{"aten::_efficientzerotensor",
                           "aten::_fused_sdp_choice",
                           "aten::_local_scalar_dense",
                           "aten::_nested_view_from_buffer",
                           "aten::_pin_memory",
                           "aten::_reshape_alias",
                           "aten::as_strided",
                           "aten::empty.memory_format",
                           "aten::empty_strided",
                           "aten::is_pinned",
                           "aten::is_set_to",
                           "aten::record_stream",
                           "aten::resize_",
                           "aten::set_",
                           "aten::set_.source_Storage",
                           "aten::set_.source_Storage_storage_offset",
                           "aten::set_.source_Tensor",
                           "aten::unfold",
                           "aten::view",
                           "aten::view_as_complex",
                           "aten::view_as_real"};
  return names;
}

const Names& kept_of_sparse() {
  static const Names names{"aten::_coalesced_",
                           "aten::_dimI",
                           "aten::_dimV",
                           "aten::_indices",
                           "aten::_nnz",
                           "aten::_sparse_coo_tensor_with_dims",
                           "aten::_sparse_coo_tensor_with_dims_and_tensors",
                           "aten::_values",
                           "aten::ccol_indices",
                           "aten::clone",
                           "aten::col_indices",
                           "aten::copy_",
                           "aten::copy_sparse_to_sparse_",
                           "aten::crow_indices",
                           "aten::dense_dim",
                           "aten::empty.memory_format",
                           "aten::empty_like",
                           "aten::indices",
                           "aten::is_coalesced",
                           "aten::permute",
                           "aten::resize_",
                           "aten::resize_as_sparse_",
                           "aten::row_indices",
                           "aten::select.int",
                           "aten::sparse_dim",
                           "aten::sparse_resize_",
                           "aten::sparse_resize_and_clear_",
                           "aten::unsqueeze",
                           "aten::values",
                           "aten::view_as_complex",
                           "aten::view_as_real"};
  return names;
}

const Names& kept_of_nested() {
  static const Names names{"aten::_fused_sdp_choice",
                           "aten::_nested_tensor_size",
                           "aten::_nested_tensor_storage_offsets",
                           "aten::_nested_tensor_strides",
                           "aten::_scaled_dot_product_cudnn_attention",
                           "aten::_scaled_dot_product_cudnn_attention_backward",
                           "aten::_scaled_dot_product_efficient_attention",
                           "aten::_scaled_dot_product_flash_attention",
                           "aten::_scaled_dot_product_flash_attention_backward",
                           "aten::_to_copy",
                           "aten::copy_",
                           "aten::empty_like",
                           "aten::is_same_size",
                           "aten::values"};
  return names;
}

}  // namespace

bool keeps_kernel(const std::string& name, c10::DispatchKey key) {
  // These operators communicate through a process group.
  if (name.starts_with("c10d::")) return true;
  switch (key) {
    case c10::DispatchKey::CUDA:
      return kept_of_dense().contains(name);
    case c10::DispatchKey::SparseCUDA:
    case c10::DispatchKey::SparseCsrCUDA:
      return kept_of_sparse().contains(name);
    case c10::DispatchKey::NestedTensorCUDA:
      return kept_of_nested().contains(name);
    default:
      return false;
  }
}

}  // namespace simgpu
